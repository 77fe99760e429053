"""Converts changes to DNS UPDATE messages (RFC 2136).

The invariant: each message makes some of the changes completely, if the zone has the RRsets that these changes expect;
otherwise it changes nothing.  The only exception is a change of one RRset that is too large for one message.

One message contains all of a Replace, and all changes of the apex NS records with those of the name servers' addresses,
since some servers (BIND) refuse a zone whose name servers have no address.
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

#: Octets of a message for changes.  The rest of 65535 is for the header, the zone, a SOA and a signature.
ROOM = 63000
#: Types that must not exist when a CNAME replaces other data: a server would ignore the CNAME without an error.
RIVALS = ('A', 'AAAA', 'CAA', 'DS', 'HTTPS', 'MX', 'NAPTR', 'NS', 'PTR', 'SRV', 'SSHFP', 'SVCB', 'TLSA', 'TXT')
#: Octets of a record beside its owner and data: type, class, TTL, length.
_FIXED = 10
#: Octets of an owner that is in the message already.
_POINTER = 2

Data = tuple[dns.rdata.Rdata, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """The prerequisite and the update of one RRset in a message.

    :ivar type: ANY for all RRsets of the name
    :ivar needs: the data that must exist; empty if the RRset must not exist, None if it must exist with any data
    :ivar whole: whether the RRset is deleted first
    :ivar add: data that is added next, with *ttl*
    :ivar drop: data that is deleted last
    """

    name: dns.name.Name
    type: str
    needs: Data | None = ()
    whole: bool = False
    add: Data = ()
    drop: Data = ()
    ttl: int = 0

    def octets(self, again: int | None = None) -> int:
        """The most octets that it takes.

        :param again: octets of its name after the first time; None for the whole name
        """
        name = _length(self.name)
        each = name if again is None else again
        data = [*(self.needs or ()), *self.add, *self.drop]
        bare = (not self.needs) + self.whole
        return name - each + (each + _FIXED) * (len(data) + bare) + sum(map(_length, data))


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """One UPDATE message.

    :ivar finished: the changes that are complete when the server has accepted it
    :ivar begun: a change that is too large for one message, and not complete with this one
    :ivar soa: the zone's new SOA; None if the server increments the serial
    """

    edits: tuple[Edit, ...]
    finished: tuple[Change, ...] = ()
    begun: Change | None = None
    soa: RRset | None = None

    def wire(self, zone: str) -> dns.update.UpdateMessage:
        """The message, to be signed and sent."""
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
    """The messages that make *changes* in a zone, to be sent in this order.

    :param changes: in the order of applying, without the SOA's
    :param soa: the existing SOA and the one after the last message
    :param loose: those of *changes* whose RRsets must exist, with any data
    """
    loosely = frozenset(map(id, loose))
    groups = _groups(zone, changes)
    if soa is None:
        yield from _messages_of(zone, groups, loosely)
        return
    # Messages take more memory than changes, so they are made twice instead of being stored.
    before, after = soa
    count = max(1, sum(1 for _ in _messages_of(zone, groups, loosely)))
    steps = serials(serial_of(before), serial_of(after), count)
    packed = _messages_of(zone, groups, loosely) if groups else iter([Message(())])
    for message, step in zip(packed, steps, strict=True):
        yield message if step is None else dataclasses.replace(message, soa=with_serial(after, step))


def serials(before: int, after: int, count: int) -> list[int | None]:
    """The new serial of the zone in each of *count* messages; None if the server increments it.

    A server increments the serial with each message that has no SOA (RFC 2136 section 3.6), and ignores a SOA that is
    not newer (section 3.4.2.2).  So the messages before the last set serials between *before* and *after*, if there are
    enough of them, and the zone has *after* only with the last message.
    """
    if distance(before, after) < count:
        return [None] * (count - 1) + [after]
    return [*((before + step) % SPACE for step in range(1, count)), after]


def _groups(zone: str, changes: Sequence[Change]) -> list[tuple[Change, ...]]:
    """*changes* in the order of sending, in groups that must be in one message.

    MX records are last, since some servers (BIND) refuse one whose host has no address in the zone.
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


def _messages_of(zone: str, groups: Iterable[tuple[Change, ...]], loose: frozenset[int]) -> Iterator[Message]:
    """The messages of *groups*, each with as many as it has room for."""
    edits: list[Edit] = []
    finished: list[Change] = []
    aliases: dict[str, bool] = {}
    taken = 0
    for group in groups:
        added = list(chain.from_iterable(_edits(zone, change, id(change) in loose) for change in group))
        size = sum(edit.octets() for edit in added)
        if edits and (taken + size > ROOM or any(_collides(aliases, change) for change in group)):
            yield Message(tuple(edits), tuple(finished))
            edits, finished, aliases, taken = [], [], {}, 0
        if size > ROOM and sum(edit.octets(_POINTER) for edit in added) > ROOM and not _is_own_ns(zone, group[0]):
            yield from _in_parts(zone, group)
            continue
        edits += added
        finished += group
        aliases.update((change.name, aliases.get(change.name, False) or 'CNAME' in change.types) for change in group)
        taken += size
    if edits:
        yield Message(tuple(edits), tuple(finished))


def _collides(aliases: Mapping[str, bool], change: Change) -> bool:
    """Whether *change* may require what another change in the message makes.

    A server checks all prerequisites of a message before it makes any update (RFC 2136 section 3.2); a CNAME requires
    that the name has nothing else, and other types that it has no CNAME.

    :param aliases: the names in the message, and whether a CNAME is added or removed there
    """
    return change.name in aliases and (aliases[change.name] or 'CNAME' in change.types)


def _edits(zone: str, change: Change, loose: bool) -> Iterator[Edit]:
    """The parts of one message that make *change*."""
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
    """A change of the apex NS records.

    A server ignores the deletion of the whole RRset, and of its last record (RFC 2136 section 3.4.2.4).  But all
    records must be deleted, since some servers (Knot) keep the TTL of existing ones.  So the message replaces them by a
    placeholder, and the placeholder by the new records.
    """
    before = _data(old)
    yield Edit(name, 'NS', None if loose else before, add=_PLACEHOLDER, drop=before, ttl=new.ttl)
    yield Edit(name, 'NS', None, add=_data(new), drop=_PLACEHOLDER, ttl=new.ttl)


def _in_parts(zone: str, group: tuple[Change, ...]) -> Iterator[Message]:
    """The messages of one change that is too large for one message; they add before they delete.

    Their prerequisites are only that the RRset exists, or does not exist: there is no room for its data.
    """
    change, = group
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
        # Some servers (Knot) use the new TTL only if the record did not exist.
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
