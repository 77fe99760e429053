"""The loop of every wait: ask the API again and again, until it is over or the time is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from designate_pool.cli.http.errors import ApiRefusal, CliError

Result = TypeVar('Result')


def poll(look: Callable[[], Result | None], end: float, pause: float,
         longest_pause: float) -> tuple[Result | None, CliError | None]:
    """Call *look* until it returns something.

    :param end: when the time is over, by :func:`time.monotonic`
    :param pause: seconds before the second look; each pause is longer than the one before, up to *longest_pause*
    :return: what *look* returned last, and what it failed with last: an API that does not answer may be back before the
        time is over
    :raises ApiRefusal: when what is waited for is not there (404)
    """
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
        time.sleep(min(pause, left))
        pause = min(pause * 1.3, longest_pause)
