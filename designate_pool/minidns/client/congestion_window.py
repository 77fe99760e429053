"""How many queries to one server may be in flight: additive increase, multiplicative decrease.

The window grows by one for each window of replies.  It halves when a datagram was lost or its reply truncated, which
response rate limiting and a full receive buffer both cause.  Losses of what was sent before the last halving belong to
the same congestion and do not halve it again.  A server that answers nothing at all halves it only once: asking it less
would not help, and the queries to it have to end in their time.
"""

from __future__ import annotations

#: More than this overflow a server's default receive buffer.
MAX_SIZE = 128


class CongestionWindow:
    """
    :ivar size: queries that may be in flight, 1 to *max_size*
    """

    __slots__ = ('size', '_max_size', '_width', '_answered_since_halved', '_halved_at')

    def __init__(self, max_size: int = MAX_SIZE) -> None:
        self.size = max_size
        self._max_size = max_size
        self._width = float(max_size)
        self._answered_since_halved = True
        self._halved_at = float('-inf')

    def answered(self) -> None:
        """A query got a complete reply; the call may be left out while *size* is at its maximum."""
        self._answered_since_halved = True
        if self.size < self._max_size:
            self._width = min(self._max_size, self._width + 1 / self._width)
            self.size = int(self._width)

    def truncated(self, sent_at: float, now: float) -> None:
        """The reply was truncated.

        :param sent_at: seconds of the same clock as *now*
        """
        self._answered_since_halved = True
        self.lost(sent_at, now)

    def lost(self, sent_at: float, now: float) -> None:
        """The query sent at *sent_at* got no reply in time."""
        if self._answered_since_halved and sent_at >= self._halved_at:
            self._answered_since_halved, self._halved_at = False, now
            self._width = max(1.0, self._width / 2)
            self.size = int(self._width)
