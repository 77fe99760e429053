"""``designate-pool status``"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from designate_pool.cli.base import ShowOne, columns


class ShowStatus(ShowOne):
    """Tell whether the API and Central answer; the exit code is 1 when they do not."""

    exit_code = 0

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        health = self.client.health()
        self.exit_code = 0 if health['status'] == 'ok' else 1
        return columns({'url': self.client.url, **health}, ('url', 'version', 'status', 'central'),
                       parsed_args.formatter)

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or self.exit_code
