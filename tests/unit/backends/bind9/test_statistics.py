"""The zones in what BIND's statistics channel says, without a server."""

from __future__ import annotations

import contextlib
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.backends.bind9 import driver
from designate_pool.errors import BackendError, InvalidField


def zone(name: str, serial: int | str = 1, kind: str = 'secondary', rdclass: str = 'IN') -> str:
    return (f'<zone name={quoteattr(name)} rdataclass="{rdclass}"><type>{kind}</type><serial>{serial}</serial>'
            '<loaded>2026-01-01T00:00:00Z</loaded></zone>')


ANSWER = f'''<?xml version="1.0" encoding="UTF-8"?>
<?xml-stylesheet type="text/xsl" href="/bind9.xsl"?>
<statistics version="3.13"><server><version>a "&lt;[ strange" one</version></server><views>
<view name="other"><zones>{zone('example.com', 5)}</zones></view>
<view name="inside"><zones>{zone('EXAMPLE.com', 4294967295)}{zone('empty.example', '-')}
{zone('own.example', 3, 'primary')}{zone('10.IN-ADDR.ARPA', 0, 'builtin')}{zone('version.bind', 0, 'secondary', 'CH')}
{zone('old.example', 2, 'slave')}{zone('a' + chr(92) + '"' + chr(92) + ' <&>.example', 7)}{zone('.', 8)}</zones></view>
<view name="none"/></views></statistics>'''.encode()
ZONES = {'example.com.': 4294967295, 'empty.example.': None, 'own.example.': 3, 'old.example.': 2,
         'a\\"\\032<&>.example.': 7, '.': 8}


def read(octets: bytes, view: str, size: int = 64) -> dict[str, int | None]:
    pieces = (octets[start:start + size] for start in range(0, len(octets), size))
    return {name: serial for name, serial, is_primary in driver._zones(pieces, view)
            if is_primary is (name == 'own.example.')}


@given(st.integers(1, 400))
def test_zones_of_the_view_however_the_answer_is_cut(size: int) -> None:
    assert read(ANSWER, 'inside', size) == ZONES
    assert read(ANSWER, 'other', size) == {'example.com.': 5}
    assert read(ANSWER, 'none', size) == {}


def test_a_view_that_is_not_there() -> None:
    with pytest.raises(BackendError, match="no view 'outside', but has other, inside, none"):
        read(ANSWER, 'outside')


@given(st.integers(0, len(ANSWER) - 1))
def test_an_answer_that_is_cut_short_is_no_answer(length: int) -> None:
    with pytest.raises(driver.MALFORMED):
        read(ANSWER[:length], 'inside')


@given(st.integers(0, len(ANSWER) - 1), st.sampled_from([b'<', b'>', b'&', b'"', b'/', b'x', b'\xff']))
def test_a_wrong_character_is_an_error_or_harmless(where: int, character: bytes) -> None:
    with contextlib.suppress(BackendError, *driver.MALFORMED):
        read(ANSWER[:where] + character + ANSWER[where + 1:], 'inside')


@pytest.mark.parametrize('text', ['{"views": []}', '<html>', '<view name="inside"><zone name="a"/></view>',
                                  '<view name="inside"><zones><zone rdataclass="IN"><type>slave</type></zone></zones>'
                                  '</view>',
                                  f'<view name="inside"><zones>{zone("a..b")}</zones></view>',
                                  f'<view name="inside"><zones>{zone("a", "x")}</zones></view>'])
def test_another_shape_is_malformed(text: str) -> None:
    with pytest.raises(driver.MALFORMED):
        read(text.encode(), 'inside')


@pytest.mark.parametrize('text', ['a', '<a/>'])
def test_what_is_no_zone_is_not_gathered(text: str) -> None:
    with pytest.raises(ValueError, match='octets without a zone'):
        read(b'<statistics>' + text.encode() * (driver.LARGEST_ZONE // len(text)), 'inside', 1 << 16)


@pytest.mark.parametrize('url', ['https://192.0.2.53:8053', '192.0.2.53:8053', 'http://', 'http://192.0.2.53:x',
                                 'http://[::1', 'http://192.0.2.53/a b', 'http://192.0.2.53/?a', 'file:///etc/passwd'])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidField, match='statistics_url'):
        driver.StatisticsChannel(url)
