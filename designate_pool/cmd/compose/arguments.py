"""Types of arguments that several programs have."""

from __future__ import annotations

import argparse
import re

from designate_pool.errors import InvalidField
from designate_pool.model import Endpoint
from designate_pool.protocol.names_and_rdata import normal_name


def endpoint(text: str) -> Endpoint:
    match = re.fullmatch(r'(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):([0-9]{1,5})', text)
    if match is None or int(match[3]) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not ADDRESS:PORT or [ADDRESS]:PORT")
    return Endpoint(match[1] or match[2], int(match[3]))


def zone(text: str) -> str:
    """A zone's name; the final dot may be left out."""
    try:
        return normal_name(text if text.endswith('.') else f'{text}.')
    except InvalidField as error:
        raise argparse.ArgumentTypeError(str(error)) from error
