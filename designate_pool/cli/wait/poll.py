"""The loop of every wait: ask the API again and again, until it is over or the time is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from designate_pool.backoff import Backoff
from designate_pool.cli.http.errors import ApiRefusal, CliError

Result = TypeVar('Result')


def poll(look: Callable[[], Result | None], end: float, pauses: Backoff) -> tuple[Result | None, CliError | None]:
    """Call *look* until it returns something.

    :param end: when the time is over, by :func:`time.monotonic`
    :param pauses: between two looks
    :return: what *look* returned last, and what it failed with last: an API that does not answer may be back before the
        time is over
    :raises ApiRefusal: when what is waited for is not there (404)
    """
    delays = pauses.delays()
    while True:
        result, failure = None, None
        try:
            result = look()
        except CliError as error:
            if isinstance(error, ApiRefusal) and error.status == 404:
                raise
            failure = error
        left = end - time.monotonic()
        if result is not None or left <= 0:
            return result, failure
        time.sleep(min(next(delays), left))
