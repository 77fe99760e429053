"""Zone serials: 32-bit numbers on a circle (RFC 1982).

Of two serials the newer is the one reached by the shorter way forward.  Two serials exactly 2**31 apart have no
order: neither is newer, and :func:`at_least` says no both ways.  So this is not a total order; to sort serials, sort
their :func:`distance` from one of them.
"""

from __future__ import annotations

SPACE = 1 << 32
HALF = 1 << 31


def distance(start: int, end: int) -> int:
    """Steps from *start* to *end*, -2**31 < steps <= 2**31; positive is forward."""
    steps = (end - start) % SPACE
    return steps if steps <= HALF else steps - SPACE


def newer(a: int, b: int) -> bool:
    """Whether *a* is newer than *b* (RFC 1982 section 3.2)."""
    return 0 < (a - b) % SPACE < HALF


def at_least(a: int, b: int) -> bool:
    """Whether *a* is *b* or newer."""
    return (a - b) % SPACE < HALF


def within(first: int, serial: int, last: int) -> bool:
    """Whether *serial* lies on the way forward from *first* to *last*, which may be longer than half the circle."""
    return (last - serial) % SPACE <= (last - first) % SPACE


def next_serial(previous: int | None, now: float) -> int:
    """The serial after *previous*: the clock in seconds if that is newer, else one more.

    :param previous: the last serial that the name ever had, deleted domains included; None for a new name
    :param now: seconds since 1970
    """
    clock = int(now) % SPACE
    if previous is None or newer(clock, previous):
        return clock
    return (previous + 1) % SPACE
