"""Changes as DNS UPDATE messages, against a server that is no more than RFC 2136 section 3."""

from __future__ import annotations

from collections.abc import Iterator

import dns.message
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.update
import pytest
from hypothesis import given, strategies as st

from designate_pool.errors import BackendError, BackendUnreachable, InvalidField
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.processors.ownership import TxtOwnership
from designate_pool.planner.targets import rfc2136
from designate_pool.planner.targets.fake import zone_of
from designate_pool.planner.targets.rfc2136 import Message, Rfc2136Provider, messages
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset, rrset
from designate_pool.protocol.soa_rdata import serial_of
from designate_pool.protocol.tcp_client import key_of
from designate_pool.serial import newer
from tests.fixtures.plans import planned
from tests.unit.planner.values import synced

NAME = 'example.com.'
SOA = '@ 300 SOA ns1.example.net. hostmaster.example.com. {serial} 3600 600 86400 300\n'
ANY, NONE = dns.rdataclass.ANY, dns.rdataclass.NONE
KINDS = ('A', 'TXT', 'MX', 'CNAME')
DATA = {'A': ['192.0.2.1', '192.0.2.2', '192.0.2.3'], 'TXT': ['"one"', '"two"'], 'MX': ['10 mail.example.net.'],
        'CNAME': ['www.example.net.', 'web.example.net.'],
        'NS': ['ns1.example.net.', 'ns2.example.net.', 'b.example.com.']}


class Simple(Rfc2136Provider):
    """A provider and its server in one.

    :ivar held: what the server has
    :ivar lose: from which message on all is lost, counted from 0; None for nothing
    :ivar answer_only: whether it does what the first lost message says
    :ivar exacting: whether it never finds data equal
    """

    def __init__(self, held: Zone, **settings: object) -> None:
        super().__init__('simple', '192.0.2.53', **settings)  # type: ignore[arg-type]
        self.held = held
        self.got: list[Message] = []
        self.lose: int | None = None
        self.answer_only = False
        self.exacting = False

    def create_zone(self, desired: Zone) -> None:
        assert desired.name == NAME

    def send(self, zone: str, message: Message) -> dns.rcode.Rcode:
        is_lost = self.lose is not None and len(self.got) >= self.lose
        if is_lost and not (self.answer_only and len(self.got) == self.lose):
            raise BackendUnreachable(why='lost')
        self.got.append(message)
        update = dns.message.from_wire(message.wire(zone).to_wire())
        assert isinstance(update, dns.update.UpdateMessage)
        for each, code in self._unmet(update):
            return code
        self._carry_out(update)
        if is_lost:
            raise BackendUnreachable(why='lost')
        return dns.rcode.NOERROR

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        if self.lose is not None and len(self.got) >= self.lose:
            raise BackendUnreachable(why='lost')
        for each in self.held:
            zone.add_record(each)
        return True

    def _unmet(self, update: dns.update.UpdateMessage) -> Iterator[tuple[str, dns.rcode.Rcode]]:
        """Section 3.2."""
        exact: dict[tuple[str, str], set[str]] = {}
        for each in update.prerequisite:
            name, rtype = each.name.to_text(), dns.rdatatype.to_text(each.rdtype)
            there = self.held.get(name, rtype)
            if each.deleting == NONE and rtype == 'ANY' and self.held.at(name):
                yield name, dns.rcode.YXDOMAIN
            elif each.deleting == NONE and there is not None:
                yield name, dns.rcode.YXRRSET
            elif each.deleting == ANY and there is None:
                yield name, dns.rcode.NXRRSET
            elif each.deleting is None:
                exact.setdefault((name, rtype), set()).add(each[0].to_text())
        for (name, rtype), data in exact.items():
            there = self.held.get(name, rtype)
            if there is None or self.exacting or set(there.rdatas) != data:
                yield name, dns.rcode.NXRRSET

    def _carry_out(self, update: dns.update.UpdateMessage) -> None:
        """Section 3.4.2."""
        before, serial = self.held.copy(), self.serial
        for each in update.update:
            name, rtype = each.name.to_text(), dns.rdatatype.to_text(each.rdtype)
            there = self.held.get(name, rtype)
            if each.deleting == ANY:
                if there is not None and not (name == NAME and rtype in ('NS', 'SOA')):
                    self.held.remove_record(there)
            elif each.deleting == NONE:
                self._drop(there, each[0].to_text())
            else:
                self._add(there, RRset(name, rtype, each.ttl, (each[0].to_text(),)))
        if self.held != before and self.serial == serial:
            self._set_serial(serial + 1)

    def _drop(self, there: RRset | None, data: str) -> None:
        if there is None or data not in there.rdatas:
            return
        left = tuple(each for each in there.rdatas if each != data)
        if left:
            self.held.add_record(there._replace(rdatas=left), replace=True)
        elif there.name != NAME or there.type not in ('NS', 'SOA'):
            self.held.remove_record(there)

    def _add(self, there: RRset | None, new: RRset) -> None:
        aliases = {each.type == 'CNAME' for each in self.held.at(new.name)}
        if aliases and aliases != {new.type == 'CNAME'}:
            return
        if new.type == 'SOA':
            if newer(serial_of(new), self.serial):
                self.held.add_record(new, replace=True)
        elif there is None or new.type == 'CNAME':
            self.held.add_record(new, replace=True)
        elif new.rdatas[0] not in there.rdatas:  # the TTL of a record that is there stays, as with Knot
            self.held.add_record(RRset(new.name, new.type, new.ttl, tuple(sorted((*there.rdatas, *new.rdatas)))),
                                 replace=True)

    @property
    def serial(self) -> int:
        soa = self.held.get(NAME, 'SOA')
        assert soa is not None
        return serial_of(soa)

    def _set_serial(self, serial: int) -> None:
        soa = self.held.get(NAME, 'SOA')
        assert soa is not None
        self.held.add_record(rrset(NAME, 'SOA', 300, [soa.rdatas[0].replace(f' {self.serial} ', f' {serial} ')]),
                             replace=True)


@st.composite
def zones(draw: st.DrawFn, serial: int) -> Zone:
    zone = zone_of(NAME, SOA.format(serial=serial))

    def put(name: str, rtype: str) -> None:
        data = draw(st.lists(st.sampled_from(DATA[rtype]), min_size=1, max_size=1 if rtype == 'CNAME' else 3))
        zone.add_record(rrset(name, rtype, draw(st.sampled_from([60, 300])), data))

    put(NAME, 'NS')
    for label in ('a', 'b', 'c', 'd'):
        types = draw(st.one_of(st.just(['CNAME']), st.lists(st.sampled_from(KINDS[:-1]), unique=True)))
        for rtype in types:
            put(f'{label}.{NAME}', rtype)
    return zone


ROOMS = st.sampled_from([60, 150, 400, 63000])


@given(zones(1), zones(1000), ROOMS)
def test_any_zone_becomes_any_other(before: Zone, after: Zone, room: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rfc2136, 'ROOM', room)
        target = Simple(before)
        plan = planned(target, after)
        result = target.apply(plan)
        assert result.ok and result.applied == len(plan.changes)
        assert set(target.held) == set(after)
        assert target.plan(after) is None
        assert target.apply(plan) == result and target.held == after, 'the same plan again'


@given(zones(1), zones(1000), ROOMS, st.booleans())
def test_interrupted_at_every_message_then_again(before: Zone, after: Zone, room: int, answer_only: bool) -> None:
    """The same zone in the end, and behind in its serial until all is there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rfc2136, 'ROOM', room)
        whole = Simple(before.copy())
        whole.apply(planned(whole, after))
        for cut in range(len(whole.got)):
            target = Simple(before.copy())
            plan = planned(target, after)
            target.lose, target.answer_only = cut, answer_only
            try:
                result = target.apply(plan)
                assert not result.ok and 'lost' in result.errors[-1]
                assert result.applied + result.failed + result.skipped == len(plan.changes)
            except BackendUnreachable:
                pass
            target.lose = None
            if (again := target.plan(after)) is not None:
                assert newer(1000, target.serial) and target.apply(again).ok
            else:
                assert answer_only and cut == len(whole.got) - 1
            assert target.held == after


@given(zones(1), zones(1000), zones(500))
def test_what_somebody_else_changed_is_left_to_the_next_plan(before: Zone, after: Zone, other: Zone) -> None:
    target = Simple(before)
    plan = planned(target, after)
    target.held = other.copy()
    result = target.apply(plan)
    touched = {each.key for change in plan.changes for each in (*change.existing, *change.new)}
    for rrset_there in other:
        if rrset_there.key not in touched:
            assert target.held.get(rrset_there.name, rrset_there.type) == rrset_there
        elif not result.ok and rrset_there.type != 'SOA':
            now = target.held.get(rrset_there.name, rrset_there.type)
            assert now in (rrset_there, after.get(rrset_there.name, rrset_there.type))
    if (again := target.plan(after)) is not None:
        assert target.apply(again).ok
    assert target.plan(after) is None


def test_it_is_said_why_the_rest_was_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Simple(zone_of(NAME, SOA.format(serial=1) + 'a 60 A 192.0.2.1\nb 60 A 192.0.2.1'))
    plan = planned(target, zone_of(NAME, SOA.format(serial=9) + 'a 60 A 192.0.2.3\nb 60 A 192.0.2.3'))
    target.held.add_record(rrset(f'b.{NAME}', 'A', 60, ['192.0.2.2']), replace=True)  # by somebody else
    target.lose = 2  # what would be read then
    monkeypatch.setattr(rfc2136, 'ROOM', 120)
    result = target.apply(plan)
    assert (result.applied, result.failed, result.skipped, len(result.errors)) == (1, 0, len(plan.changes) - 1, 1)
    assert 'lost' in result.errors[0]


def test_a_server_that_compares_data_otherwise() -> None:
    """When nothing has changed, and yet it says so, it is asked only whether there is anything."""
    target = Simple(zone_of(NAME, SOA.format(serial=1) + '@ 300 NS ns1.example.net.\nwww 60 A 192.0.2.1\n'))
    target.exacting = True
    desired = zone_of(NAME, SOA.format(serial=9) + '@ 300 NS ns1.example.net.\nwww 60 A 192.0.2.2\n')
    assert target.apply(planned(target, desired)).ok
    assert target.held == desired


def test_a_server_that_says_so_whatever_it_is_asked() -> None:
    class Never(Simple):
        def send(self, zone: str, message: Message) -> dns.rcode.Rcode:
            return dns.rcode.NXRRSET

    target = Never(zone_of(NAME, SOA.format(serial=1) + '@ 300 NS ns1.example.net.\nwww 60 A 192.0.2.1\n'))
    desired = zone_of(NAME, SOA.format(serial=9) + '@ 300 NS ns1.example.net.\nwww 60 A 192.0.2.2\n')
    result = target.apply(planned(target, desired))
    assert (result.applied, result.failed, result.skipped) == (0, 1, 1)
    assert result.errors == ('www.example.com. A: the server still answers NXRRSET after 4 tries',)


def test_a_plan_that_deletes_the_own_name_servers() -> None:
    """A server would say yes, and keep them."""
    zone = zone_of(NAME, SOA.format(serial=1) + '@ 300 NS ns1.example.net.\nwww 60 A 192.0.2.1\n')
    target = Simple(zone.copy())
    going = [changes.delete(each) for each in zone if each.type != 'SOA']
    result = target.apply(Plan(zone, zone.empty(), going, exists=True))
    assert (result.applied, result.failed) == (1, 1)
    assert 'a server keeps the SOA and the NS records of a zone' in result.errors[0]


def test_a_change_and_one_that_waits_for_it_are_not_in_one_message() -> None:
    """A processor may part what belongs together; what a message requires must then be true before it."""
    alias, address = rrset('www.example.com.', 'CNAME', 60, ['a.']), rrset('www.example.com.', 'A', 60, ['192.0.2.1'])
    made = list(messages(NAME, [changes.delete(alias), changes.create(address)]))
    assert [each.finished for each in made] == [(changes.delete(alias),), (changes.create(address),)]


@pytest.mark.parametrize(('before', 'after', 'count', 'found'), [
    (5, 1000, 0, [1000]),
    (5, 1000, 1, [1000]),
    (5, 1000, 3, [6, 7, 1000]),
    (5, 8, 3, [6, 7, 8]),
    (5, 7, 3, [6, None, 7]),
    (5, 5, 1, [5]),
    (9, 5, 2, [None, 5]),
    ((1 << 32) - 2, 5, 4, [(1 << 32) - 1, 0, 1, 5]),
    (0, 1 << 31, 2, [1, 1 << 31]),
])
def test_serials_on_the_way(before: int, after: int, count: int, found: list[int | None],
                            monkeypatch: pytest.MonkeyPatch) -> None:
    """None where the server counts."""
    monkeypatch.setattr(rfc2136, 'ROOM', 1)
    old, new = (rrset(NAME, 'SOA', 60, [f'ns.example. hostmaster.example. {serial} 2 3 4 5']) for serial in
                (before, after))
    made = [changes.create(rrset(f'h{number}.{NAME}', 'A', 60, ['192.0.2.1'])) for number in range(count)]
    assert [each.soa and serial_of(each.soa) for each in messages(NAME, made, (old, new))] == found


def test_an_alias_and_the_marks_of_its_owner_have_their_own_names() -> None:
    """A Replace contains the changes of its marks."""
    apex = SOA.format(serial=1) + '@ 300 NS ns1.example.net.\n'
    target, owner = Simple(zone_of(NAME, apex)), TxtOwnership('own', 'me')
    beside = 'www 60 TXT "beside"\n'
    for serial, line in enumerate(('www 60 A 192.0.2.1\n' + beside, 'www 60 CNAME a.example.net.\n',
                                   beside + 'www 60 A 192.0.2.2\n'), 2):
        plan = synced(target, zone_of(NAME, apex.replace(' 1 ', f' {serial} ') + line), [owner])
        assert plan is not None and target.apply(plan) == (len(plan.changes), 0, 0, ())
        marks = [f'{each.split()[2].lower()}-www.{NAME}' for each in line.splitlines()]
        assert {each.name for each in target.held} == {NAME, f'www.{NAME}', *marks}
        assert target.serial == serial
    assert 'Replace' in {each.kind for each in plan.changes}


def test_the_longest_names_fit() -> None:
    """As many RRsets to a message as there is room for, with the longest of names, zone, SOA and key."""
    label = 'a' * 63
    zone = f'{label}.{label}.{"b" * 61}.'
    names = [f'{"c" * 50}{number:04}.{zone}' for number in range(600)]
    made = [changes.update(rrset(name, 'NS', 60, [f'{name[:-1]}x.']), rrset(name, 'NS', 61, [f'{name[:-1]}y.']))
            for name in names]
    before = rrset(zone, 'SOA', 60, [f'{names[0]} {names[1]} 1 2 3 4 5'])
    after = rrset(zone, 'SOA', 60, [f'{names[0]} {names[1]} 1000 2 3 4 5'])
    key = key_of(names[0], 'c2VjcmV0', 'hmac-sha512')
    found = list(messages(zone, made, (before, after)))
    assert len(found) > 2 and sum(len(each.finished) for each in found) == 600
    for each in found:
        update = each.wire(zone)
        update.use_tsig(key)
        assert len(update.to_wire()) <= 65535


def test_an_rrset_that_no_message_holds_fails_alone() -> None:
    before = zone_of(NAME, SOA.format(serial=1) + '@ 300 NS ns1.example.net.\n')
    after = before.copy()
    for name, count in (('few', 9), ('more', 4010)):
        after.add_record(rrset(f'{name}.{NAME}', 'A', 60, [f'10.0.{number >> 8}.{number & 255}'
                                                           for number in range(count)]))
    target = Simple(before)
    result = target.apply(planned(target, after))
    assert result == (1, 1, 0, ('more.example.com. A: it is too large for a DNS message',))
    assert target.serial == 2


@pytest.mark.parametrize(('name', 'secret', 'algorithm', 'field'), [
    ('key.example.', None, None, 'key_secret'), (None, 'c2VjcmV0', None, 'key_name'),
    ('key.example.', 'not Base64!', None, 'key_secret'), ('key.example.', 'c2VjcmV0', 'sha256', 'key_algorithm'),
    ('key..example.', 'c2VjcmV0', None, 'key_name')])
def test_what_makes_no_key(name: str | None, secret: str | None, algorithm: str | None, field: str) -> None:
    with pytest.raises(InvalidField, match=field) as caught:
        Rfc2136Provider('target', '192.0.2.53', 53, name, secret, algorithm)
    assert 'c2VjcmV0' not in str(caught.value)


class Joined(Simple):
    """Somebody else adds a record before each of the first *times* messages."""

    def __init__(self, held: Zone, times: int) -> None:
        super().__init__(held)
        self.times = times

    def send(self, zone: str, message: Message) -> dns.rcode.Rcode:
        if len(self.got) < self.times:
            self.held.add_record(rrset(f'added{len(self.got)}.{NAME}', 'A', 60, ['192.0.2.7']))
        return super().send(zone, message)


def test_a_record_that_is_added_while_the_zone_is_emptied_is_deleted_too() -> None:
    target = Joined(zone_of(NAME, SOA.format(serial=1) + '@ 300 NS ns1.example.net.\nwww 300 A 192.0.2.1\n'), 1)
    target.delete_zone(NAME)
    assert {each.type for each in target.held} == {'SOA', 'NS'}


def test_a_zone_that_somebody_else_keeps_filling_is_not_emptied() -> None:
    target = Joined(zone_of(NAME, SOA.format(serial=1) + '@ 300 NS ns1.example.net.\nwww 300 A 192.0.2.1\n'), 99)
    with pytest.raises(BackendError, match='somebody else keeps adding records'):
        target.delete_zone(NAME)
