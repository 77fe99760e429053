"""How many questions one server may have before it, from how it answers.

It grows by one for as many answers as it is wide, and halves when a datagram was lost or cut short: what a server's
response rate limiting does to those who ask too much, and a full receive buffer too.  All that was sent before it
was last halved tells of that same crowding, and halves it no more.  A server that answers nothing at all does not
become quicker by being asked less, and the questions to it have to come to their ends: silence halves it once.
"""

from __future__ import annotations

#: More overflow a server's default receive buffer.
MOST = 128


class CongestionWindow:
    """
    :ivar size: from 1 to *most*
    """

    __slots__ = ('size', '_most', '_width', '_heard', '_halved_at')

    def __init__(self, most: int = MOST) -> None:
        self.size = most
        self._most = most
        self._width = float(most)
        self._heard = True
        self._halved_at = float('-inf')

    def answered(self) -> None:
        """A question was answered in full; while it is as wide as can be, that need not be told."""
        self._heard = True
        if self.size < self._most:
            self._width = min(self._most, self._width + 1 / self._width)
            self.size = int(self._width)

    def truncated(self, sent_at: float, now: float) -> None:
        """The answer was to come over TCP; the times are in seconds of one clock."""
        self._heard = True
        self.lost(sent_at, now)

    def lost(self, sent_at: float, now: float) -> None:
        """What was sent at *sent_at* has not been answered in its time."""
        if self._heard and sent_at >= self._halved_at:
            self._heard, self._halved_at = False, now
            self._width = max(1.0, self._width / 2)
            self.size = int(self._width)
