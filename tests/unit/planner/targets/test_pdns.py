"""The requests that are made of a plan for PowerDNS, and what becomes of refusals; the words that it takes."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from designate_pool.errors import BackendError, InvalidField
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.targets import pdns
from designate_pool.planner.targets.pdns import (MOST_REFUSALS, SURE_SIZE, Entry, HeldRRset, PdnsApply, PdnsProvider,
                                                 soa_to_write)
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from designate_pool.powerdns import PdnsAnswer
from designate_pool.protocol.names_and_rdata import normal_rdata
from designate_pool.protocol.rrset import rrset
from designate_pool.protocol.soa_rdata import serial_of

SOA = 'ns1.example.com. hostmaster.example.com. {} 3600 600 86400 300'
OK = PdnsAnswer(204, None, '204 No Content')


def zone(lines: str = '', number: int | None = None) -> Zone:
    """A zone of lines like ``www A 192.0.2.1``, with a SOA where it has a serial."""
    found = Zone('example.com.')
    if number is not None:
        found.add_record(rrset('example.com.', 'SOA', 300, [SOA.format(number)]))
    for line in lines.splitlines():
        name, rtype, data = line.split(None, 2)
        found.add_record(rrset(f'{name}.example.com.', rtype, 300, [data]))
    return found


def plan_of(existing: Zone, desired: Zone) -> Plan:
    return Plan(existing, desired, changes.between(existing, desired), True)


def there(found: Zone) -> dict[str, HeldRRset]:
    return {each.key: HeldRRset(each.key, each, ()) for each in found}


class Api:
    """Refuses each request that has one of the *bad* names in it, and keeps the others."""

    def __init__(self, bad: Sequence[str] = (), words: str = 'RRset {} IN A: no (422)') -> None:
        self.bad = {f'{name}.example.com.' for name in bad}
        self.words = words
        self.asked = 0
        self.made: list[list[tuple[str, str, str]]] = []

    def patch(self, entries: Sequence[Entry]) -> PdnsAnswer:
        self.asked += 1
        for each in entries:
            if each['name'] in self.bad:
                return PdnsAnswer(422, None, self.words.format(each['name']))
        self.made.append([(each['changetype'], each['name'].removesuffix('.example.com.'), each['type'])
                          for each in entries])
        return OK


def send(plan: Plan, patch: Callable[[Sequence[Entry]], PdnsAnswer], most: int = 10 * SURE_SIZE) -> ApplyResult:
    now = there(plan.existing)
    soa = now.get('example.com.\tSOA')
    provider: Any = types.SimpleNamespace(patch=lambda zone, entries: patch(entries), most_octets=lambda: most)
    return PdnsApply(provider, plan, now, soa_to_write(plan, soa.rrset if soa else None, False)).run()


def test_all_in_one_request_and_what_goes_first() -> None:
    api = Api()
    plan = plan_of(zone('a CNAME b.example.com.\nold A 192.0.2.1\n', 1),
                   zone('a A 192.0.2.1\nnew A 192.0.2.1\n', 2))
    assert send(plan, api.patch) == ApplyResult(applied=4)
    assert api.made == [[('DELETE', 'old', 'A'), ('DELETE', 'a', 'CNAME'), ('REPLACE', 'a', 'A'),
                         ('REPLACE', 'new', 'A'), ('REPLACE', 'example.com.', 'SOA')]]


def test_a_bad_one_that_is_named_costs_one_request() -> None:
    api = Api(['h3'])
    plan = plan_of(zone(number=1), zone(''.join(f'h{number} A 192.0.2.1\n' for number in range(9)), 2))
    result = send(plan, api.patch)
    assert (result.applied, result.failed, result.skipped) == (8, 1, 1)
    assert result.errors == ('h3.example.com. A: RRset h3.example.com. IN A: no (422)',)
    assert api.asked == 2
    assert len(api.made[0]) == 8


@given(st.sets(st.integers(0, 39), max_size=6))
def test_bad_ones_that_are_not_named_are_found_by_halving(numbers: set[int]) -> None:
    """All others go, each once; the SOA goes only where there is no bad one."""
    api = Api([f'h{number}' for number in numbers], 'no (422)')
    plan = plan_of(zone(number=1), zone(''.join(f'h{number} A 192.0.2.1\n' for number in range(40)), 2))
    result = send(plan, api.patch)
    bad = len(numbers)
    assert (result.applied, result.failed, result.skipped) == (41 - bad - bool(bad), bad, bool(bad))
    made = [name for request in api.made for _, name, _ in request]
    assert sorted(made) == sorted({*(f'h{number}' for number in range(40) if number not in numbers),
                                   *([] if bad else ['example.com.'])})
    assert api.asked <= 1 + 2 * 6 * bad


def test_a_bad_soa_is_left_out() -> None:
    api = Api(words='RRset {} IN SOA: no (422)')
    api.bad = {'example.com.'}
    result = send(plan_of(zone(number=1), zone('a A 192.0.2.1\nb A 192.0.2.1\n', 2)), api.patch)
    assert result == ApplyResult(2, 1, 0, ('example.com. SOA: RRset example.com. IN SOA: no (422)',))
    result = send(plan_of(zone(number=1), zone(number=2)), api.patch)
    assert result == ApplyResult(0, 1, 0, ('example.com. SOA: RRset example.com. IN SOA: no (422)',))


def test_refusals_have_an_end() -> None:
    count = 500
    text = ''.join(f'h{number} A 192.0.2.1\n' for number in range(count))
    for words in ('no (422)', 'RRset {} IN A: no (422)'):
        api = Api([f'h{number}' for number in range(count)], words)
        result = send(plan_of(zone(number=1), zone(text, 2)), api.patch)
        assert api.asked == MOST_REFUSALS
        assert result.applied == 0 and result.failed + result.skipped == count + 1
        assert result.errors[-1] == f'after {MOST_REFUSALS} refusals the other changes were not tried'


def test_a_request_that_a_proxy_finds_too_large_is_halved() -> None:
    sizes: list[int] = []

    def patch(entries: Sequence[Entry]) -> PdnsAnswer:
        sizes.append(len(entries))
        return OK if len(entries) <= 10 else PdnsAnswer(413, None, '413 Request Entity Too Large')

    plan = plan_of(zone(number=1), zone(''.join(f'h{number} A 192.0.2.1\n' for number in range(16)), 2))
    assert send(plan, patch) == ApplyResult(applied=17)
    assert sizes == [17, 8, 9]


def test_requests_are_as_long_as_they_may_be() -> None:
    sizes: list[int] = []

    def patch(entries: Sequence[Entry]) -> PdnsAnswer:
        sizes.append(len(json.dumps({'rrsets': entries})))
        return OK

    data = ' '.join(['"' + 'x' * 255 + '"'] * 200)
    plan = plan_of(zone(number=1), zone(''.join(f'h{number} TXT {data}\n' for number in range(60)), 2))
    most = 2 * SURE_SIZE
    assert send(plan, patch, most) == ApplyResult(applied=61)
    assert len(sizes) == 2 and max(sizes) <= most + 1000


def test_trouble_after_the_first_request_is_told_with_what_was_done() -> None:
    def patch(entries: Sequence[Entry]) -> PdnsAnswer:
        if any(each['type'] == 'SOA' for each in entries):
            raise BackendError(why='it broke')
        return OK

    data = ' '.join(['"' + 'x' * 255 + '"'] * 200)
    plan = plan_of(zone(number=1), zone(''.join(f'h{number} TXT {data}\n' for number in range(30)), 2))
    result = send(plan, patch, SURE_SIZE)
    assert 0 < result.applied < 30 and result.skipped == 31 - result.applied
    assert result.errors == (str(BackendError(why='it broke')),)
    with pytest.raises(BackendError):
        send(plan_of(zone(number=1), zone(number=2)), patch)


@pytest.mark.parametrize(('before', 'after', 'counted', 'written'), [
    (1, 2, False, 2), (1, 2, True, 2), (5, 2, False, 6), (5, 2, True, None), (4294967295, 4294967290, False, 0),
    (4294967295, 3, False, 3), (7, None, False, 8), (7, None, True, None), (2, 2, False, None), (None, 2, False, 2)])
def test_the_soa_that_goes_with_changes(before: int | None, after: int | None, counted: bool,
                                        written: int | None) -> None:
    existing, desired = zone(number=before), zone('a A 192.0.2.1\n', after)
    plan = plan_of(existing, desired)
    winds_back = before is not None and after is not None and written != after
    plan.changes = [each for each in plan.changes if each.record.type != 'SOA' or after is not None and not winds_back]
    found = soa_to_write(plan, existing.get('example.com.', 'SOA'), counted)
    assert (None if found is None else serial_of(found)) == written


labels = st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=5)


@given(labels)
def test_no_name_is_lost(found: list[bytes]) -> None:
    escaped = '.'.join(''.join(f'\\{octet:03d}' for octet in label) for label in found) + '.'
    ours = normal_rdata('CNAME', escaped)
    assert pdns.to_rdata('CNAME', pdns.of_rdata('CNAME', ours)) == ours


def test_what_has_no_normal_form_is_different_from_all_that_has() -> None:
    assert pdns.to_rdata_or_marked('HTTPS', '1 . ipv4hint=auto') == '1 . ipv4hint=auto ?'
    with pytest.raises(InvalidField):
        pdns.to_rdata('HTTPS', '1 . ipv4hint=auto ?')
    assert pdns.to_rdata_or_marked('A', '192.0.2.1') == '192.0.2.1'


@pytest.mark.parametrize(('options', 'field'), [
    ({}, 'api_url'), ({'host': '192.0.2.1', 'kind': 'Slave'}, 'kind'),
    ({'host': '192.0.2.1', 'api_key': ''}, 'api_key'), ({'host': '192.0.2.1', 'server_id': 'a/b'}, 'server_id'),
    ({'api_url': 'ftp://192.0.2.1'}, 'api_url')])
def test_options_that_cannot_be_used(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidField, match=f'^{field}: '):
        PdnsProvider('ns1', **{'api_key': 'only-for-us'} | options)


def test_where_the_api_is() -> None:
    assert PdnsProvider('ns1', 'key', host='2001:db8::1', port=80)._server.url == 'http://[2001:db8::1]:80'
    assert PdnsProvider('ns1', 'key', 'https://dns.example.com/')._server.url == 'https://dns.example.com'
