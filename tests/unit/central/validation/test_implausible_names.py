"""Names that can only be a mistake, and what is offered in their place."""

from __future__ import annotations

import pytest

from designate_pool.central.validation import requests
from designate_pool.errors import InvalidField


def refusal(name: str) -> str:
    with pytest.raises(InvalidField) as caught:
        requests.new_domain({'name': name, 'email': 'hostmaster@example.com'})
    return str(caught.value)


@pytest.mark.parametrize('given, reverse', [
    ('192.0.2.7.', '2.0.192.in-addr.arpa.'), ('192.0.2.64/26.', '2.0.192.in-addr.arpa.'),
    ('192.0.2.7/24.', '2.0.192.in-addr.arpa.'), ('10.0.0.0/8.', '10.in-addr.arpa.'),
    ('198.51.100.0/23.', '51.198.in-addr.arpa.'), ('0.0.0.0/0.', 'in-addr.arpa.'),
    ('2001:DB8:1::/48.', '1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.'), ('2001:db8::/31.', 'b.d.0.1.0.0.2.ip6.arpa.'),
    ('2001:db8::1.', '0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.')])
def test_an_address_or_a_network_is_refused_and_its_reverse_zone_named(given: str, reverse: str) -> None:
    assert refusal(given) == ('name: it is an address or a network and no name; its reverse names are in '
                              f'{reverse}, or zones below.')


@pytest.mark.parametrize('given', ['ex ample.', 'example .com.', ' example.com.', r'ex\032ample.com.', 'a\tb.example.',
                                   r'a\000b.example.', r'a\127b.example.'])
def test_what_has_blanks_or_control_characters_is_refused(given: str) -> None:
    assert 'a blank or a control character is in it' in refusal(given)


@pytest.mark.parametrize('name', [
    '2.0.192.in-addr.arpa.', '0/26.2.0.192.in-addr.arpa.', '1.2.3.', 'xn--bcher-kva.example.', '_tcp.example.com.',
    r'a\.b.example.com.', r'\255.example.com.', r'a\\000.example.com.', 'a/b.example.net.', 'com.'])
def test_what_may_be_meant_is_taken(name: str) -> None:
    assert requests.new_domain({'name': name, 'email': 'hostmaster@example.com'}).name == name
