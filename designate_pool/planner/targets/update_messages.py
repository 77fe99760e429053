"""Changes as DNS UPDATE messages (RFC 2136).

The invariant: each message, taken alone, makes of a zone that is as the changes say it was another that is as they say
it shall be for some of them; and it does nothing at all to a zone in which one of those RRsets is different.  Only an
RRset whose change is too large for one message is changed in several.

What belongs together is in one message: a Replace; and the zone's own NS records with the addresses of the name servers
that they name, since some servers (BIND) refuse a zone whose name servers have no address.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.update

from designate_pool.planner.zone.changes import Change
from designate_pool.protocol.rrset import RRset
from designate_pool.protocol.soa_rdata import serial_of, with_serial
from designate_pool.serial import SPACE, distance

#: Octets that a message has for changes.  The rest of 65535 is for the header, the zone, a SOA and a signature.
ROOM = 63000
#: Types that must not be there when a CNAME takes the place of others: a server would ignore it without a word.
RIVALS = ('A', 'AAAA', 'CAA', 'DS', 'HTTPS', 'MX', 'NAPTR', 'NS', 'PTR', 'SRV', 'SSHFP', 'SVCB', 'TLSA', 'TXT')
#: Octets of a record beside its owner and data: type, class, TTL, length.
_FIXED = 10
#: Octets of an owner that was in the message before.
_POINTER = 2

Data = tuple[dns.rdata.Rdata, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """What a message says of one RRset.

    :ivar type: ANY stands for all that the name has
    :ivar needs: the data that have to be there; none when nothing may be; None when anything may, but not nothing
    :ivar whole: whether all of it is deleted first
    :ivar add: added after that, with *ttl*
    :ivar drop: deleted one by one after that
    """

    name: dns.name.Name
    type: str
    needs: Data | None = ()
    whole: bool = False
    add: Data = ()
    drop: Data = ()
    ttl: int = 0

    def octets(self, again: int | None = None) -> int:
        """How long it is at most: with its name always in full, or *again* octets long from the second time on."""
        name = _length(self.name)
        each = name if again is None else again
        data = [*(self.needs or ()), *self.add, *self.drop]
        bare = (not self.needs) + self.whole
        return name - each + (each + _FIXED) * (len(data) + bare) + sum(map(_length, data))


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """What one message says.

    :ivar finished: the changes that are made when the server has accepted it
    :ivar begun: a change that is too large for one message, and is not made yet with this one
    :ivar soa: the SOA that it gives the zone; None leaves it to the server to raise the serial
    """

    edits: tuple[Edit, ...]
    finished: tuple[Change, ...] = ()
    begun: Change | None = None
    soa: RRset | None = None

    def wire(self, zone: str) -> dns.update.UpdateMessage:
        """It as it is sent, but for the signature."""
        made = dns.update.UpdateMessage(zone)
        for edit in self.edits:
            _require(made, edit)
        for edit in self.edits:
            if edit.whole:
                made.delete(edit.name, edit.type)
        for edit in self.edits:
            if edit.add:
                made.add(edit.name, edit.ttl, *edit.add)
            if edit.drop:
                made.delete(edit.name, *edit.drop)
        if self.soa is not None:
            made.add(dns.name.from_text(self.soa.name), self.soa.ttl, *_data(self.soa))
        return made


def messages(zone: str, changes: Sequence[Change], soa: tuple[RRset, RRset] | None = None,
             loose: Iterable[Change] = ()) -> Iterator[Message]:
    """The messages that make *changes* in a zone, to be sent one after the other.

    :param changes: in the order of applying, without that of the SOA
    :param soa: the SOA that is there and the one that is to be there in the end
    :param loose: those of *changes* whose RRsets need only be there, whatever their data
    """
    loosely = frozenset(map(id, loose))
    units = _units(zone, changes)
    if soa is None:
        yield from _packed(zone, units, loosely)
        return
    # Packed twice, and not kept: a large plan is larger as messages.
    before, after = soa
    count = max(1, sum(1 for _ in _packed(zone, units, loosely)))
    steps = serials(serial_of(before), serial_of(after), count)
    packed = _packed(zone, units, loosely) if units else iter([Message(())])
    for message, step in zip(packed, steps, strict=True):
        yield message if step is None else dataclasses.replace(message, soa=with_serial(after, step))


def serials(before: int, after: int, count: int) -> list[int | None]:
    """The serial that each of *count* messages gives the zone; None leaves it to the server.

    A server raises the serial with every message that does not (RFC 2136 section 3.6), and ignores a SOA that is not
    newer (section 3.4.2.2).  So messages before the last say serials in between, where there are enough of these: the
    server ends exactly at *after*, and is behind it until then.
    """
    if distance(before, after) < count:
        return [None] * (count - 1) + [after]
    return [*((before + step) % SPACE for step in range(1, count)), after]


def _units(zone: str, changes: Sequence[Change]) -> list[tuple[Change, ...]]:
    """*changes* as they are sent, those together that have to be in one message.

    MX records come last: some servers (BIND) refuse one whose host has no address in the zone yet.
    """
    changes = sorted(changes, key=lambda change: any(each.type == 'MX' for each in change.new))
    apex = [change for change in changes if _is_own_ns(zone, change)]
    servers = {data for change in apex for each in (*change.existing, *change.new) if each.type == 'NS'
               for data in each.rdatas}
    together = [change for change in changes if change in apex or change.name in servers]
    if not apex or len(together) == 1 or sum(_octets(zone, change) for change in together) > ROOM:
        return [(change,) for change in changes]
    kept = set(map(id, together))
    return [tuple(together), *((change,) for change in changes if id(change) not in kept)]


def _is_own_ns(zone: str, change: Change) -> bool:
    return change.name == zone and 'NS' in change.types


def _packed(zone: str, units: Iterable[tuple[Change, ...]], loose: frozenset[int]) -> Iterator[Message]:
    """As many units to a message as fit."""
    edits: list[Edit] = []
    finished: list[Change] = []
    aliases: dict[str, bool] = {}
    taken = 0
    for unit in units:
        added = list(chain.from_iterable(_edits(zone, change, id(change) in loose) for change in unit))
        size = sum(edit.octets() for edit in added)
        if edits and (taken + size > ROOM or any(_collides(aliases, change) for change in unit)):
            yield Message(tuple(edits), tuple(finished))
            edits, finished, aliases, taken = [], [], {}, 0
        if size > ROOM and sum(edit.octets(_POINTER) for edit in added) > ROOM and not _is_own_ns(zone, unit[0]):
            yield from _in_parts(zone, unit)
            continue
        edits += added
        finished += unit
        aliases.update((change.name, aliases.get(change.name, False) or 'CNAME' in change.types) for change in unit)
        taken += size
    if edits:
        yield Message(tuple(edits), tuple(finished))


def _collides(aliases: Mapping[str, bool], change: Change) -> bool:
    """Whether what *change* requires may be true only when what is in the message already is done.

    All that a message requires is looked at before anything of it is done (RFC 2136 section 3.2), and a CNAME requires
    that nothing else is there, everything else that no CNAME is.

    :param aliases: the names that are in the message, and whether a CNAME comes to it or goes
    """
    return change.name in aliases and (aliases[change.name] or 'CNAME' in change.types)


def _edits(zone: str, change: Change, loose: bool) -> Iterator[Edit]:
    """What one message has to say to make *change*."""
    gone = {each.type: each for each in change.existing}
    name = dns.name.from_text(change.name)
    for new in change.new:
        old = gone.pop(new.type, None)
        if old is not None and new.type == 'NS' and new.name == zone:
            yield from _own_ns(name, old, new, loose)
        else:
            yield Edit(name, new.type, () if old is None else None if loose else _data(old), whole=old is not None,
                       add=_data(new), ttl=new.ttl)
    for old in gone.values():
        yield Edit(name, old.type, None if loose else _data(old), whole=True)
    types = {each.type for each in change.new}
    if types and not change.existing:
        yield Edit(name, 'ANY' if 'CNAME' in types else 'CNAME')
    elif 'CNAME' in types and change.kind == 'Replace':
        yield from (Edit(name, rival) for rival in RIVALS if rival not in change.types)


def _own_ns(name: dns.name.Name, old: RRset, new: RRset, loose: bool) -> Iterator[Edit]:
    """A server ignores the deletion of the zone's own NS RRset, and of the last record of it (section 3.4.2.4).

    All records have to go all the same, since some servers (Knot) keep the TTL of those that are there; so another one
    takes their place within the message.
    """
    before = _data(old)
    yield Edit(name, 'NS', None if loose else before, add=_PLACEHOLDER, drop=before, ttl=new.ttl)
    yield Edit(name, 'NS', None, add=_data(new), drop=_PLACEHOLDER, ttl=new.ttl)


def _in_parts(zone: str, unit: tuple[Change, ...]) -> Iterator[Message]:
    """Changes too large for a message, in several: what comes, comes before what goes.

    There is no room to say what should be there, only whether there should be anything.
    """
    change, = unit
    name = dns.name.from_text(change.name)
    gone = {each.type: each for each in change.existing}
    parts: list[tuple[Edit, ...]] = []
    if change.kind == 'Replace':
        parts += [(Edit(name, old.type, None, whole=True),) for old in gone.values()]
        gone = {}
    for new in change.new:
        parts += _parts(name, gone.pop(new.type, None), new)
    parts += [(Edit(name, old.type, None, whole=True),) for old in gone.values()]
    yield from (Message(part, begun=change) for part in parts[:-1])
    yield Message(parts[-1], (change,))


def _parts(name: dns.name.Name, old: RRset | None, new: RRset) -> Iterator[tuple[Edit, ...]]:
    if old is None:
        for number, chunk in enumerate(_chunks(name, _data(new))):
            yield Edit(name, new.type, None if number else (), add=chunk, ttl=new.ttl),
        return
    before, after = _data(old), _data(new)
    there, kept = frozenset(before), frozenset(after)
    for chunk in _chunks(name, after if old.ttl != new.ttl else [each for each in after if each not in there]):
        # Some servers (Knot) take over a TTL only from a record that was not there.
        yield (Edit(name, new.type, None, drop=chunk[:1]), Edit(name, new.type, None, add=chunk, ttl=new.ttl))
    for chunk in _chunks(name, [each for each in before if each not in kept]):
        yield Edit(name, new.type, None, drop=chunk),


def _chunks(name: dns.name.Name, data: Iterable[dns.rdata.Rdata]) -> Iterator[Data]:
    chunk: list[dns.rdata.Rdata] = []
    size = _length(name)
    for each in data:
        octets = _POINTER + _FIXED + _length(each)
        if chunk and size + octets > ROOM:
            yield tuple(chunk)
            chunk, size = [], _length(name)
        chunk.append(each)
        size += octets
    if chunk:
        yield tuple(chunk)


def _octets(zone: str, change: Change) -> int:
    return sum(edit.octets() for edit in _edits(zone, change, False))


_PLACEHOLDER = (dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.NS, 'placeholder.invalid.'),)


def _length(part: dns.name.Name | dns.rdata.Rdata) -> int:
    return len(part.to_wire() or b'')


def _data(rrset: RRset) -> Data:
    rtype = dns.rdatatype.from_text(rrset.type)
    return tuple(dns.rdata.from_text(dns.rdataclass.IN, rtype, text) for text in rrset.rdatas)


def _require(made: dns.update.UpdateMessage, edit: Edit) -> None:
    if edit.needs is None:
        made.present(edit.name, edit.type)
    elif edit.needs:
        made.present(edit.name, *edit.needs)
    elif edit.type == 'ANY':
        made.absent(edit.name)
    else:
        made.absent(edit.name, edit.type)
