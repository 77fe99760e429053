"""Log records of state changes: a sentence for people, and fields for programs.

oslo.log's JSON format (``[DEFAULT] use_json``) has the fields under ``extra``; a line of text ends with the request id.
"""

from __future__ import annotations

import logging
from typing import Any


def transition(log: logging.Logger, level: int, text: str, *arguments: object, request_id: str = '',
               **fields: Any) -> None:
    """Log *text* % *arguments*.

    :param request_id: of the request that led to it; empty when it is not known
    :param fields: ``domain``, ``server``, ``action``, ``serial`` and others
    """
    if not log.isEnabledFor(level):
        return
    if request_id:
        text, arguments = f'{text} [%s]', (*arguments, request_id)
    log.log(level, text, *arguments, extra={'extra': {**fields, 'request_id': request_id or None}}, stacklevel=2)
