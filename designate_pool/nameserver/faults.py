"""The faults that the name server can be told to have.

==========  ===========================================================================================
``drop``    no reply to anything over DNS
``delay``   replies come the given seconds late
``servfail``  queries are answered with SERVFAIL
``refused``   queries are answered with REFUSED
``stale``   changes are not fetched, so the old serial is still served
``altered``   the right serial is served with other contents
``broken``    transfers stop in the middle, and the old zone is kept
==========  ===========================================================================================

A fault is for the whole server or for one zone, and permanent or for the next *count* times that it applies.
"""

from __future__ import annotations

import dataclasses
import re
import threading

from designate_pool.errors import InvalidField

KINDS = ('drop', 'delay', 'servfail', 'refused', 'stale', 'altered', 'broken')
#: Faults that keep zones from being fetched; when they are cleared, all zones are refreshed.
TRANSFER_FAULTS = ('stale', 'broken')

_FORM = re.compile(r'(?P<kind>[a-z]+)(=(?P<seconds>[0-9.]+))?(\*(?P<count>[0-9]+))?(@(?P<zone>.+))?')


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault.

    :ivar seconds: for ``delay``
    :ivar count: how often it applies; None for always
    :ivar zone: the zone's absolute name in lower case; None is the whole server
    """

    kind: str
    seconds: float = 0.0
    count: int | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidField(field='kind', why=f"'{self.kind}' is no fault; there are {', '.join(KINDS)}")
        if not 0 <= self.seconds <= 3600:
            raise InvalidField(field='seconds', why='it goes from 0 to 3600')
        if self.count is not None and self.count < 1:
            raise InvalidField(field='count', why='it is at least 1')

    @classmethod
    def parse(cls, text: str) -> Fault:
        """``KIND[=SECONDS][*COUNT][@ZONE]``, such as ``drop``, ``delay=2.5`` or ``servfail*3@example.com.``."""
        match = _FORM.fullmatch(text.strip().lower())
        if match is None:
            raise InvalidField(field='fault', why=f"'{text}' is not of the form KIND[=SECONDS][*COUNT][@ZONE]")
        zone = match['zone']
        try:
            return cls(match['kind'], float(match['seconds'] or 0), int(match['count']) if match['count'] else None,
                       None if zone is None else zone.rstrip('.') + '.')
        except ValueError as error:
            raise InvalidField(field='fault', why=f"'{match['seconds']}' is not a number of seconds") from error


class Faults:
    """The active faults."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: dict[tuple[str, str | None], Fault] = {}

    def set(self, fault: Fault) -> None:
        """Activate *fault*, in place of one of its kind for the same zone."""
        with self._lock:
            self._active[(fault.kind, fault.zone)] = fault

    def clear(self) -> list[Fault]:
        """Clear them; returns them."""
        with self._lock:
            cleared, self._active = list(self._active.values()), {}
        return cleared

    def take(self, kind: str, zone: str | None) -> Fault | None:
        """The fault of *kind* that applies to *zone*, counted as used; the zone's own before the server's."""
        if not self._active:
            return None
        with self._lock:
            fault = self._active.get((kind, zone)) or self._active.get((kind, None))
            if fault is not None and fault.count is not None:
                if fault.count > 1:
                    self._active[(kind, fault.zone)] = dataclasses.replace(fault, count=fault.count - 1)
                else:
                    del self._active[(kind, fault.zone)]
        return fault
