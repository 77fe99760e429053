"""One normal form for each RRset, and a clear error for what is none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.errors import InvalidField
from designate_pool.protocol.names_and_rdata import MAX_TTL
from designate_pool.protocol.rrset import Extra, RRset, rrset, unpack


def test_data_of_an_rrset_is_sorted_and_has_nothing_twice() -> None:
    found = rrset('WWW.example.com.', 'a', 300, ['192.0.2.2', '192.0.2.1', '192.0.2.2'])
    assert found == RRset('www.example.com.', 'A', 300, ('192.0.2.1', '192.0.2.2'))
    assert str(found) == 'www.example.com. 300 A 192.0.2.1, 192.0.2.2'


@pytest.mark.parametrize(('rtype', 'ttl', 'data', 'why'), [
    ('A', 300, [], 'no data'),
    ('A', -1, ['192.0.2.1'], 'TTL'),
    ('A', MAX_TTL + 1, ['192.0.2.1'], 'TTL'),
    ('A', True, ['192.0.2.1'], 'TTL'),
    ('A', '300', ['192.0.2.1'], 'TTL'),
    ('CNAME', 300, ['a.example.com.', 'b.example.com.'], 'one CNAME record at most'),
])
def test_what_is_no_rrset_is_refused_by_its_name_and_type(rtype: str, ttl: int, data: list[str], why: str) -> None:
    with pytest.raises(InvalidField, match=why) as error:
        rrset('www.example.com.', rtype, ttl, data)
    assert f'www.example.com. {rtype}' in str(error.value)


@pytest.mark.parametrize(('rtype', 'given', 'told'), [
    ('TXT', 'v=DMARC1; p=reject', '"v=DMARC1; p=reject"'),
    ('TXT', 'hello (world)', '"hello (world)"'),
    ('TXT', 'one "two three"', '"one" "two three"'),
])
def test_text_without_quotes_is_one_string(rtype: str, given: str, told: str) -> None:
    assert rrset('www.example.com.', rtype, 300, [given]).rdatas == (told,)


@pytest.mark.parametrize(('rtype', 'given', 'rest'), [
    ('TXT', '"v=DMARC1"; p=reject', '; p=reject'),
    ('CAA', '0 issue ca.example.net; policy=ev', '; policy=ev'),
    ('A', '192.0.2.1 ; old', '; old'),
    ('MX', '( 10 mail.example.com. )', '( 10 mail.example.com. )'),
])
def test_nothing_after_a_value_is_dropped(rtype: str, given: str, rest: str) -> None:
    with pytest.raises(InvalidField, match=re.escape(f'{rest!r} would be dropped')):
        rrset('www.example.com.', rtype, 300, [given])


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.integers(0, MAX_TTL))
def test_an_rrset_comes_back_from_its_packed_form(texts: list[bytes], ttl: int) -> None:
    data = ['"' + ''.join(f'\\{octet:03}' for octet in text) + '"' for text in texts]
    found = rrset('www.example.com.', 'TXT', ttl, data)
    assert unpack(found.key, found.packed) == found
    assert found.packed.count('\t') == len(found.rdatas)


@pytest.mark.parametrize(('extra', 'is_for'), [
    (Extra(), True),
    (Extra(ignored=True), False),
    (Extra(included=('here',)), True),
    (Extra(included=('there',)), False),
    (Extra(excluded=('here',)), False),
    (Extra(excluded=('there',)), True),
    (Extra(included=('here',), excluded=('here',)), False),
])
def test_which_targets_a_record_is_for(extra: Extra, is_for: bool) -> None:
    """Z-19."""
    assert extra.is_for('here') is is_for
