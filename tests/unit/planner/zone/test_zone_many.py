"""Zones of many RRsets: what is equal is in memory once, and only what has to be looked at is unpacked."""

from __future__ import annotations

import pathlib

import pytest

from designate_pool.errors import DuplicateRRset, RRsetBesideCname, RRsetInSubZone, RRsetOutsideZone, SupportsException
from designate_pool.planner import master
from designate_pool.planner.providers.base import BaseProvider
from designate_pool.planner.sources.zonefile import ZoneFileSource
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import Extra, RRset, rrset

ZONE = 'example.com.'
TEXT = '''\
@ 300 SOA ns1 hostmaster 1 3600 600 604800 300
@ 300 NS ns1
www 300 A 192.0.2.1
www 300 A 192.0.2.2
mail 300 MX 10 mx
1 300 PTR a.example.net.
1 300 PTR b.example.net.
'''
WWW, WWW_TEXT = 'www.example.com.\tA', ''.join(('300\t', '192.0.2.1', '\t192.0.2.2'))


def zone(text: str = TEXT) -> Zone:
    found = Zone(ZONE)
    found.fill(master.read(text, ZONE))
    return found


class Target(BaseProvider):
    """One that has what it is given, and remembers what it was asked to plan for."""

    def __init__(self, source: ZoneFileSource | None = None) -> None:
        super().__init__('there', strict_supports=False)
        self.source = source
        self.existing: Zone | None = None

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        self.existing = zone
        if self.source is None:
            zone.fill(((key, ''.join(list(value))) for key, value in sorted(master.read(TEXT, ZONE).items())), lenient)
        else:
            self.source.populate(zone, target, lenient)
        return True


class OneMail(Target):
    """It supports MX at one name alone."""

    def supports(self, rrset: RRset) -> bool:
        return super().supports(rrset) and (rrset.type != 'MX' or rrset.name == 'mx.example.com.')


class NoMail(Target):
    SUPPORTS = frozenset({'A', 'NS', 'PTR'})
    SUPPORTS_MULTIVALUE_PTR = False


@pytest.mark.parametrize('from_file', [True, False])
def test_what_is_there_already_as_it_should_be_is_in_memory_once(tmp_path: pathlib.Path, from_file: bool) -> None:
    (tmp_path / ZONE).write_text(TEXT)
    desired = zone(TEXT.replace('mail 300', 'mail 60'))
    target = Target(ZoneFileSource('files', str(tmp_path)) if from_file else None)
    for _ in range(2):
        plan = target.plan(desired)
        assert plan is not None and [str(change) for change in plan.changes] == [
            'Update mail.example.com. 300 MX 10 mx.example.com. -> mail.example.com. 60 MX 10 mx.example.com.']
        assert plan.existing.packed[WWW] is desired.packed[WWW]
        assert plan.existing.packed['mail.example.com.\tMX'] == '300\t10 mx.example.com.'


def test_what_is_expected_ends_with_the_plan() -> None:
    desired, target = zone(), Target()
    target.plan(desired)
    assert target.existing is not None and not target.existing.shared_values


def test_expecting_what_never_comes_changes_nothing() -> None:
    given = zone()
    for other in (zone(TEXT.replace('192.0.2.', '198.51.100.')), Zone(ZONE), None):
        found = Zone(ZONE)
        found.share_values_with(other)
        found.fill(list(given.packed.items()))
        assert found == given
        found = Zone(ZONE)
        found.share_values_with(other)
        for each in given:
            found.add_record(each)
        assert found == given


def test_what_is_added_one_by_one_is_in_memory_once_as_well() -> None:
    given, found = zone(), Zone(ZONE)
    found.share_values_with(given)
    for each in given:
        found.add_record(each)
    assert all(found.packed[key] is value for key, value in given.packed.items())


def test_a_dict_becomes_the_zones_own_and_a_copy_has_another() -> None:
    pairs = {WWW: WWW_TEXT}
    found = Zone(ZONE)
    found.fill(pairs)
    twin = found.copy()
    twin.add_record(rrset('a.example.com.', 'A', 60, ['192.0.2.3']))
    assert dict(found.packed) == pairs == {WWW: WWW_TEXT} and len(twin) == 2


@pytest.mark.parametrize('as_dict', [True, False])
@pytest.mark.parametrize(('key', 'error'), [
    ('www.example.net.\tA', RRsetOutsideZone), ('wwwexample.com.\tA', RRsetOutsideZone),
    ('www\\.example.com.\tA', RRsetOutsideZone), ('a.sub.example.com.\tA', RRsetInSubZone),
    ('www.example.com.\tCNAME', RRsetBesideCname),
])
def test_one_that_does_not_fit_among_those_that_do(key: str, error: type[Exception], as_dict: bool) -> None:
    pairs = {WWW: WWW_TEXT, key: '300\tx.example.com.'}
    found = Zone(ZONE, sub_zones=['sub.example.com.'])
    for _ in range(2):
        with pytest.raises(error):
            found.fill(pairs if as_dict else pairs.items())
        assert len(found) == 0
    with pytest.raises(DuplicateRRset):
        found.fill([(WWW, WWW_TEXT), (WWW, WWW_TEXT)])


def test_the_rrsets_of_some_types() -> None:
    found = zone()
    found.add_record(rrset('x.example.com.', 'TXT', 60, ['"x"'], Extra(ignored=True)))
    assert [str(each) for each in found.of_types({'A', 'CAA'})] == ['www.example.com. 300 A 192.0.2.1, 192.0.2.2']
    assert sorted((each.type, each.extra.ignored) for each in found.of_types({'MX'}, with_extras=True)) == [
        ('MX', False), ('TXT', True)]
    assert [each.extra.ignored for each in found.of_types({'TXT'}, with_extras=True)] == [True]
    assert list(found.of_types(())) == []
    for each in found.of_types(found.types):
        found.remove_record(each)
    assert len(found) == 0 and list(found.of_types({'A', 'TXT'}, with_extras=True)) == []


@pytest.mark.parametrize(('kind', 'left_out'), [(Target, set()), (OneMail, {'MX'}), (NoMail, {'MX'})])
def test_what_cannot_be_held_is_left_out_and_nothing_else(kind: type[Target], left_out: set[str]) -> None:
    for _ in range(2):
        plan = kind().plan(zone(TEXT + 'new 300 A 192.0.2.9\n'))
        assert plan is not None
        assert {each.type for each in plan.desired} == {'A', 'MX', 'NS', 'PTR'} - left_out
        assert [str(each) for each in plan.changes if isinstance(each, changes.Create)] == [
            'Create new.example.com. 300 A 192.0.2.9']
        assert len(plan.desired.at('1.example.com.')[0].rdatas) == (1 if kind is NoMail else 2)


@pytest.mark.parametrize('kind', [OneMail, NoMail])
def test_what_cannot_be_held_is_an_error_where_that_is_wanted(kind: type[Target]) -> None:
    target = kind()
    target.strict_supports = True
    with pytest.raises(SupportsException, match='it cannot hold mail.example.com. MX'):
        target.plan(zone())


def test_extras_alone_make_a_change_and_are_looked_at_on_both_sides() -> None:
    old, new = rrset('www.example.com.', 'A', 60, ['192.0.2.1']), Extra(octodns={'weight': 3})
    for existing_extra, desired_extra, kinds in ((Extra(), new, ['Update']), (new, Extra(), ['Update']), (new, new, []),
                                                 (Extra(), Extra(ignored=True), [])):
        sides = []
        for extra in (existing_extra, desired_extra):
            side = Zone(ZONE)
            side.add_record(old._replace(extra=extra))
            side.add_record(rrset('other.example.com.', 'A', 60, ['192.0.2.2']))
            sides.append(side)
        assert [change.kind for change in changes.between(sides[0], sides[1])] == kinds
