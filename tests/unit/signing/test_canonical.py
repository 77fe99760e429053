"""Names and types in canonical form."""

from __future__ import annotations

import dns.name
import pytest
from hypothesis import given, strategies as st

from designate_pool.signing import canonical
from tests.unit.signing.zones import chain_key

OCTETS = st.binary(min_size=1, max_size=63)
NAMES = st.lists(OCTETS, max_size=3).map(lambda labels: dns.name.Name((*labels, b'')).canonicalize())


def test_the_order_of_rfc_4034() -> None:
    """RFC 4034 section 6.1."""
    names = ['example.', 'a.example.', 'yljkjljk.a.example.', 'Z.a.example.', 'zABC.a.EXAMPLE.', 'z.example.',
             r'\001.z.example.', '*.z.example.', r'\200.z.example.']
    assert sorted(reversed(names), key=chain_key) == names


@given(a=NAMES, b=NAMES)
def test_keys_are_in_canonical_order(a: dns.name.Name, b: dns.name.Name) -> None:
    of_a, of_b = chain_key(a.to_text()), chain_key(b.to_text())
    assert (of_a < of_b, of_a == of_b) == (a < b, a == b)
    assert max(len(of_a), len(of_b)) <= 507
    if b != dns.name.root:
        assert (of_b + b'\0' < of_a < of_b + b'\1') == (a != b and a.is_subdomain(b))


@given(NAMES)
def test_the_wire_form_is_that_of_another_program(name: dns.name.Name) -> None:
    assert canonical.name_wire(name.to_text()) == name.to_wire()


@pytest.mark.parametrize('name', ['.', 'a.', '*.Example.org.', r'a\.b.example.', f'{"a" * 63}.{"b" * 63}.{"c" * 63}.'])
def test_the_wire_form_of_names_by_situation(name: str) -> None:
    assert canonical.name_wire(name) == dns.name.from_text(name).canonicalize().to_wire()


def test_the_bitmap_of_rfc_4034() -> None:
    """RFC 4034 section 4.3: A MX RRSIG NSEC TYPE1234."""
    assert canonical.type_bitmap(frozenset({1, 15, 46, 47, 1234})) == bytes.fromhex(
        '0006400100000003' + '041b' + '00' * 26 + '20')
    assert canonical.type_bitmap(frozenset()) == b''


def test_labels_as_a_signature_counts_them() -> None:
    """RFC 4034 section 3.1.3: neither the root nor a wildcard counts."""
    names = ['.', 'example.', '*.example.', 'a.*.example.', '*a.example.']
    assert [canonical.label_count(canonical.name_wire(name)) for name in names] == [0, 1, 1, 3, 2]
