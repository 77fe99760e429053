"""The servers of the pool."""

from __future__ import annotations

import base64
import logging
import pathlib

import pytest
from oslo_config import cfg

from designate_pool import backends
from designate_pool.cmd.manage import config_check
from designate_pool.config import pools
from designate_pool.errors import BadConfiguration
from designate_pool.model import LONGEST_LABEL, Endpoint, Pool, TsigKey
from tests.unit.config.conftest import Read

ONE = '11111111-1111-4111-8111-111111111111'
TWO = '22222222-2222-4222-8222-222222222222'
THREE = 'ABCDEFAB-CDEF-4ABC-8DEF-ABCDEFABCDEF'
FOUR = '44444444-4444-4444-8444-444444444444'
SECRET = base64.b64encode(b'no one may read this').decode()
DRIVERS = backends.options()


def pool(conf: cfg.ConfigOpts) -> Pool:
    return pools.read_pool(conf, DRIVERS)


def mistakes(conf: cfg.ConfigOpts) -> list[str]:
    with pytest.raises(BadConfiguration) as caught:
        pool(conf)
    assert SECRET not in str(caught.value)
    lines = str(caught.value).splitlines()[1:]
    assert caught.value.kwargs['count'] == len(lines)
    return [line.strip() for line in lines]


def fake(rest: str = '', name: str = ONE) -> str:
    """A section that is right, and *rest*."""
    return f'[backend:fake:{name}]\nhost = 192.0.2.{1 if name == ONE else 2}\n{rest}\n'


def test_servers_of_two_drivers_with_what_they_share(read: Read) -> None:
    found = pool(read(f'''
        [service:pool_manager]
        pool_name = gold
        threshold_percentage = 66
        [service:minidns]
        listen = 192.0.2.250:5354
        [tsig:transfer.example.org]
        algorithm = HMAC-SHA256
        secret = {SECRET}
        [backend:bind9:*]
        port = 5300
        rndc_key_secret = {SECRET}
        tsig_key = transfer.example.org
        view = inside
        [backend:bind9:{ONE}]
        host = 192.0.2.1
        [backend:bind9:{THREE}]
        host = NS3.example.com
        port = 53
        view = outside
        primaries = 198.51.100.1, [2001:db8::1]:5354
        max_in_flight = 9
        call_timeout = 2.5
        [backend:powerdns:{TWO}]
        host = 2001:db8::2
        api_key = 00123
        ixfr = yes
        [backend:rfc2136:{FOUR}]
        host = 192.0.2.4
        update_pcent_threshold = 1
        min_existing_records = 2
        '''))
    assert (found.name, found.threshold_percentage) == ('gold', 66)
    key = TsigKey('transfer.example.org.', 'hmac-sha256', SECRET)
    first, third, second, fourth = found.servers
    assert (first.id, first.driver, first.host, first.port) == (ONE.replace('-', ''), 'bind9', '192.0.2.1', 5300)
    assert first.tsig_key == key
    assert first.primaries == (Endpoint('192.0.2.250', 5354),)
    assert (first.max_in_flight, first.call_timeout) == (4, 10.0)
    assert (first.options['rndc_port'], first.options['view'], first.options['rndc_key_secret']) == (
        953, 'inside', SECRET)
    assert third.id == 'abcdefabcdef4abc8defabcdefabcdef'
    assert (third.host, third.port, third.options['view']) == ('ns3.example.com', 53, 'outside')
    assert third.primaries == (Endpoint('198.51.100.1', 53), Endpoint('2001:db8::1', 5354))
    assert (third.max_in_flight, third.call_timeout) == (9, 2.5)
    assert (second.host, second.port, second.tsig_key) == ('2001:db8::2', 53, None)
    assert second.driver == 'pdns', 'powerdns is another word for it'
    assert second.options == {'adopts_zones': False, 'api_url': None, 'api_key': '00123', 'server_id': 'localhost',
                              'ca_file': None, 'ixfr': True, 'signs_zones': False}
    assert (fourth.options['update_pcent_threshold'], fourth.options['min_existing_records']) == (1.0, 2)
    assert SECRET not in repr(found)


def test_ten_different_mistakes_are_all_told_at_once(read: Read) -> None:
    assert mistakes(read(f'''
        [service:pool_manager]
        threshold_percentage = 120
        pool_nmae = gold
        [databse]
        [backend:bind9:*]
        rndc_key_secret = a$b
        [backend:bind9:{ONE}]
        port = 99999
        [backend:bind9:{ONE.upper().replace('-', '')}]
        host = 192.0.2.2
        rndc_prot = 953
        [backend:bin9:{TWO}]
        host = 192.0.2.3
        [backend:powerdns:*]
        api_key = {SECRET}
        [backend::{THREE}]
        host = 192.0.2.4
        [backend:fake:four]
        host = 192.0.2.5
        tsig_key = transfer:hmac-sha256:{SECRET}!
        ''')) == [
        '[service:pool_manager] pool_nmae: there is no such option; did you mean pool_name?',
        '[databse] there is no such section; did you mean database?',
        '[service:pool_manager] threshold_percentage: Should be less than or equal to 100',
        '[backend:bind9:*] rndc_key_secret: oslo.config reads the $ in it as a reference to another option; '
        'write $$ for a $, or file:PATH',
        f'[backend:bin9:{TWO}] there is no driver bin9; did you mean bind9? (there are: {", ".join(sorted(DRIVERS))})',
        f'[backend::{THREE}] the driver has no name',
        f'[backend:bind9:{ONE.replace("-", "")}] [backend:bind9:{ONE}] has the same UUID',
        '[backend:fake:four] four is not a UUID',
        '[backend:powerdns:*] no server has the driver powerdns',
        f"[backend:bind9:{ONE}] port: '99999' is not a port from 1 to 65535",
        f'[backend:bind9:{ONE}] host: it must be given',
        f'[backend:bind9:{ONE.replace("-", "")}] rndc_prot: there is no such option; did you mean rndc_port?',
        '[backend:fake:four] tsig_key: the secret of the TSIG key is not Base64',
    ]


@pytest.mark.parametrize('heading', ['backend', 'backend:', 'backend:fake', 'backend:fake:', 'backend:fake:x:y'])
def test_a_heading_with_too_little_or_too_much(read: Read, heading: str) -> None:
    [line] = mistakes(read(fake() + f'[{heading}]\nhost = 192.0.2.9\n'))
    assert line.startswith(f'[{heading}] write [backend:<driver>:<uuid>] ')


@pytest.mark.parametrize('host', ['', '192.0.2.1:53', 'two words', '-a.example.com', '300.0.2.1', '[2001:db8::1]:53'])
def test_a_bad_host(read: Read, host: str) -> None:
    [line] = mistakes(read(f'[backend:fake:{ONE}]\nhost = {host}\n'))
    assert line.startswith(f'[backend:fake:{ONE}] host: ')


@pytest.mark.parametrize('key', [
    'short', 'a:b', f'a:hmac-sha3:{SECRET}', 'a:hmac-sha256:', 'a:hmac-sha256:!!', f'a..b:hmac-sha256:{SECRET}',
    f'bad name:hmac-sha256:{SECRET}', f'a:hmac-sha256:{SECRET}:more', SECRET, 'env:POOL_NOWHERE',
    'file:nowhere/at/all'])
def test_a_bad_tsig_key(read: Read, key: str) -> None:
    [line] = mistakes(read(fake(f'tsig_key = {key}')))
    assert line.startswith(f'[backend:fake:{ONE}] tsig_key: ')


def test_a_bad_key_section_is_told_once_however_many_use_it(read: Read) -> None:
    text = f'[tsig:k]\nalgorithm = hmac-sha256\n{fake("tsig_key = k")}{fake("tsig_key = k", TWO)}'
    assert mistakes(read(text)) == ['[tsig:k] secret: it must be given']
    assert mistakes(read(text.replace('hmac-sha256', f'sha\nsecret = {SECRET}')))[0].startswith(
        '[tsig:k] the algorithm of the TSIG key is not one of hmac-')
    assert mistakes(read(f'[tsig:bad name]\nalgorithm = hmac-sha256\nsecret = {SECRET}\n{fake()}')) == [
        '[tsig:bad name] the name of the TSIG key is not a domain name of letters, digits, - and _']


def test_what_a_global_section_gets_wrong_is_told_once(read: Read) -> None:
    text = f'[backend:fake:*]\nport = 0\n{fake()}{fake(name=TWO)}'
    assert mistakes(read(text)) == ["[backend:fake:*] port: '0' is not a port from 1 to 65535"]


def test_secrets_come_from_files_and_the_environment_as_they_are(read: Read, tmp_path: pathlib.Path,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'key').write_text('00123$x\n')
    monkeypatch.setenv('POOL_TSIG', f'k.example.com:hmac-sha256:{SECRET}')
    [server] = pool(read(f'''
        [backend:powerdns:{ONE}]
        host = 127.0.0.1
        api_key = file:{tmp_path / 'key'}
        tsig_key = env:POOL_TSIG
        ''')).servers
    assert server.options['api_key'] == '00123$x'
    assert server.tsig_key == TsigKey('k.example.com.', 'hmac-sha256', SECRET)


@pytest.mark.parametrize(('option', 'value'), [
    ('update_pcent_threshold', '1.1'), ('update_pcent_threshold', 'much'), ('min_existing_records', '-1'),
    ('min_existing_records', '1.0'), ('ixfr', 'maybe'), ('ca_file', ''), ('primaries', 'ns.example.com')])
def test_a_driver_s_option_has_its_kind(read: Read, option: str, value: str) -> None:
    driver = 'pdns' if option in ('ixfr', 'ca_file') else 'pdns-native'
    [line] = mistakes(read(f'[backend:{driver}:{ONE}]\nhost = 192.0.2.1\napi_key = x\n{option} = {value}\n'))
    assert line.startswith(f'[backend:{driver}:{ONE}] {option}: ')


def test_both_words_of_a_driver_are_one(read: Read, tmp_path: pathlib.Path) -> None:
    shared = '[backend:powerdns:*]\napi_key = x\n'
    found = pool(read(f'{shared}[backend:pdns:{ONE}]\nhost = 192.0.2.1\n[backend:powerdns:{TWO}]\nhost = 192.0.2.2\n'))
    assert [(server.driver, server.options['api_key']) for server in found.servers] == [('pdns', 'x')] * 2
    assert mistakes(read(f'{shared}[backend:pdns:*]\napi_key = y\n[backend:pdns:{ONE}]\nhost = 192.0.2.1\n')) == [
        '[backend:pdns:*] [backend:powerdns:*] is for the same driver; only one is allowed']
    key = tmp_path / 'key'
    key.write_text('x')
    conf = read(f'[backend:powerdns:*]\napi_key = file:{key}\n[backend:pdns:{ONE}]\nhost = 192.0.2.1\n')
    assert pool(conf).servers[0].options['api_key'] == 'x'
    assert list(config_check.files_with_secrets(conf, DRIVERS)) == [('[backend:powerdns:*] api_key', str(key))]


@pytest.mark.parametrize('driver', ['fake', 'bind9'])
def test_one_server_twice_is_refused(read: Read, driver: str) -> None:
    first = f'[backend:fake:{ONE}]\nhost = 2001:db8::1\nport = 5300\n'
    second = f'[backend:{driver}:{TWO}]\nhost = 2001:DB8:0::1\nport = 5300\n'
    if driver == 'bind9':
        second += f'tsig_key = k:hmac-sha256:{SECRET}\n'
        first = second.replace(TWO, ONE).replace('k:', 'other:')
    assert mistakes(read(first + second)) == [
        f'[backend:{driver}:{TWO}] host: [backend:{"fake" if driver == "fake" else "bind9"}:{ONE}] has the same '
        'address, [2001:db8::1]:5300']
    assert len(pool(read(first + second.replace('5300', '53'))).servers) == 2


def test_a_view_too_long_to_be_kept_is_refused(read: Read) -> None:
    host = '.'.join(['h' * 60] * 4)
    text = f'[backend:bind9:{ONE}]\nhost = {host}\nview = '
    room = LONGEST_LABEL - len(f'bind9:{host}:53/')
    assert len(pool(read(text + 'v' * room)).servers[0].label) == LONGEST_LABEL
    assert mistakes(read(text + 'v' * (room + 1))) == [
        f"[backend:bind9:{ONE}] view: the server's label, made of driver, host, port and view, has 301 characters; "
        '300 are allowed']


def test_two_views_of_one_machine_are_told_apart(read: Read) -> None:
    text = '[backend:bind9:*]\nhost = 192.0.2.1\n' + ''.join(
        f'[backend:bind9:{name}]\nview = {view}\n' for name, view in ((ONE, 'inside'), (TWO, 'outside')))
    assert [server.label for server in pool(read(text)).servers] == [
        'bind9:192.0.2.1:53/inside', 'bind9:192.0.2.1:53/outside']
    [line] = mistakes(read(text.replace('outside', 'inside')))
    assert line.endswith('has the same address, 192.0.2.1:53')
    keyed = ''.join(f'[backend:rfc2136:{name}]\nhost = 192.0.2.1\ntsig_key = {key}:hmac-sha256:{SECRET}\n'
                    for name, key in ((ONE, 'inside'), (TWO, 'outside')))
    assert len(pool(read(keyed)).servers) == 2


def test_a_call_must_end_before_its_claim(read: Read) -> None:
    text = '[service:pool_manager]\nclaim_seconds = 20\n'
    [line] = mistakes(read(text + fake('call_timeout = 20')))
    assert line.startswith(f'[backend:fake:{ONE}] call_timeout: 20 s must be less than ')
    assert pool(read(text + fake('call_timeout = 19.5'))).servers[0].call_timeout == 19.5


def test_servers_cannot_transfer_from_everywhere(read: Read) -> None:
    anywhere = '[service:minidns]\nlisten = 127.0.0.1, 0.0.0.0\n'
    [line] = mistakes(read(anywhere + fake()))
    assert line.startswith(f'[backend:fake:{ONE}] primaries: [service:minidns] listen has 0.0.0.0:5354')
    [server] = pool(read(anywhere + fake('primaries = 198.51.100.1'))).servers
    assert server.primaries == (Endpoint('198.51.100.1', 53),)


def test_servers_that_are_fed_by_records_need_no_primaries(read: Read) -> None:
    conf = read('[service:minidns]\nlisten = 0.0.0.0\n'
                f'[backend:rfc2136:{ONE}]\nhost = 127.0.0.1\ncall_timeout = 5\n')
    [server] = pools.read_pool(conf, backends.options()).servers
    assert (server.primaries, server.call_timeout) == ((), 5)


def test_unsigned_servers_elsewhere_are_warned_of(read: Read, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        pool(read(f'[backend:fake:{TWO}]\nhost = 127.0.0.1\n'))
        assert not caplog.messages
        pool(read(fake()))
        assert 'fake:192.0.2.1:53' in caplog.text
