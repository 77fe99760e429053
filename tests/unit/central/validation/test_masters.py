"""Which addresses may be masters."""

from __future__ import annotations

import ipaddress

import pytest

from designate_pool.central.validation import masters
from designate_pool.errors import InvalidField

ALLOWED = (ipaddress.ip_network('10.1.0.0/16'),)


@pytest.mark.parametrize('given, kept', [
    ('192.0.2.1', '192.0.2.1:53'), ('192.0.2.1:5300', '192.0.2.1:5300'), ('2001:DB8::1', '[2001:db8::1]:53'),
    ('[2001:db8::1]:5300', '[2001:db8::1]:5300'), ('10.1.2.3', '10.1.2.3:53'),
    ('::ffff:198.51.100.1', '198.51.100.1:53'),
])
def test_what_is_kept(given: str, kept: str) -> None:
    assert masters.parse('masters', [given, given], ALLOWED) == kept


@pytest.mark.parametrize('given', [
    '10.2.0.1', '172.31.0.1', '192.168.0.1', '100.64.0.1', 'fd00::1', '127.0.0.1', '::1', '0.0.0.0', '::', '0.1.2.3',
    '169.254.169.254', 'fe80::1', 'fe80::1%eth0', '224.0.0.1', 'ff02::1', '255.255.255.255', '::ffff:127.0.0.1',
    '::127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', 'ns1.example.com.', '192.0.2.1:0', '192.0.2.1:65536', '', 5])
def test_what_is_refused(given: object) -> None:
    with pytest.raises(InvalidField, match='masters.0'):
        masters.parse('masters', [given], ALLOWED)


def test_how_many() -> None:
    for count in (0, 11):
        with pytest.raises(InvalidField):
            masters.parse('masters', [f'192.0.2.{number}' for number in range(count)])
