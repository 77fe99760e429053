"""Which sections of servers no driver can work with, and what it says of them."""

from __future__ import annotations

from typing import Any

import pytest

from designate_pool import backends
from designate_pool.errors import InvalidField
from designate_pool.model import Endpoint, Server, TsigKey, new_id
from designate_pool.testing import a_domain

#: Options with which each driver works.
WORKING: dict[str, dict[str, Any]] = {
    'bind9': {'rndc_key_secret': 'c2VjcmV0'}, 'nsd': {'pattern': 'pool', 'control_socket': '/s'}, 'knot': {},
    'pdns': {'api_key': 'only-for-us'}, 'pdns-native': {'api_key': 'only-for-us'},
    'octodns': {'class': 'octodns_powerdns.PowerDnsProvider', 'settings': '{host: 192.0.2.1, api_key: x}'}}
PRIMARY = (Endpoint('192.0.2.9', 53),)
NAMED_PRIMARY = (Endpoint('ns1.example.com', 53),)
TLS = {'control_socket': None, 'server_cert_file': '/s.pem', 'control_key_file': '/c.key',
       'control_cert_file': '/c.pem'}
#: Fields of the server, or options, that do not work; and a pattern of what is said.
WRONG: dict[str, list[tuple[dict[str, Any], str]]] = {
    'bind9': [
        ({'rndc_key_secret': None}, 'rndc_key_file: exactly one of rndc_key_file and rndc_key_secret is needed'),
        ({'rndc_key_file': '/etc/bind/rndc.key'}, 'rndc_key_file: exactly one of'),
        ({'rndc_key_secret': 'no base64!'}, 'rndc_key_secret: it is not Base64'),
        ({'rndc_key_algorithm': 'hmac-crc32'}, "rndc_key_algorithm: 'hmac-crc32' is unknown"),
        ({'view': 'a" { };'}, 'view: only letters'),
        ({'zone_file_folder': 'a"; };'}, 'zone_file_folder: only printable ASCII'),
        ({'primaries': NAMED_PRIMARY}, "primaries: 'ns1.example.com' is not an IP address"),
        ({'statistics_url': 'https://192.0.2.53'}, "statistics_url: 'https://192.0.2.53' does not look"),
        ({'tsig_key': TsigKey('a" {', 'hmac-sha256', 'AAAA'), 'primaries': PRIMARY}, 'tsig_key: ')],
    'nsd': [
        ({'pattern': None}, 'pattern: it must be given'),
        ({'pattern': 'two words'}, 'pattern: it must be the name of a pattern'),
        ({'pattern': 'a\nb'}, 'pattern: it must be the name of a pattern'),
        ({'control_socket': None}, 'control_socket: it must be given, or server_cert_file'),
        ({'control_socket': None, 'control_host': '192.0.2.1'}, 'control_socket: it must be given'),
        ({'control_host': '192.0.2.1'}, 'control_host: only one of'),
        (TLS | {'control_key_file': None}, 'control_key_file: .* must be given together'),
        ({'server_cert_file': '/s.pem'}, 'control_key_file: .* together')],
    'knot': [
        ({'primaries': NAMED_PRIMARY}, 'primaries: '),
        ({'tsig_key': TsigKey('a..b', 'hmac-sha256', 'c2VjcmV0')}, 'tsig_key: '),
        ({'control_socket': '/' + 'x' * 107}, 'control_socket: ')],
    'pdns': [
        ({'api_key': None}, 'api_key: '), ({'api_key': ''}, 'api_key: '), ({'api_key': 'geh\xe4im'}, 'api_key: '),
        ({'api_key': 'secret\r\nHost: elsewhere'}, 'api_key: '), ({'server_id': ''}, 'server_id: '),
        ({'server_id': '../localhost'}, 'server_id: '), ({'api_url': '192.0.2.1:8081'}, 'api_url: '),
        ({'api_url': 'ftp://192.0.2.1'}, 'api_url: '), ({'api_url': 'http://192.0.2.1:http'}, 'api_url: '),
        ({'api_url': 'http://user:secret@192.0.2.1'}, 'api_url: '),
        ({'api_url': 'http://192.0.2.1/?key=secret'}, 'api_url: '),
        ({'api_url': 'http://192.0.2.1:8081/api/v1'}, 'api_url: '), ({'api_url': 'http://192.0.2.1/a b'}, 'api_url: '),
        ({'api_url': 'http://192.0.2.1\r\nX: y/'}, 'api_url: '), ({'ca_file': '/etc/ssl/ca.pem'}, 'ca_file: '),
        ({'api_url': 'https://192.0.2.1', 'ca_file': '/nowhere/ca.pem'}, 'ca_file: '),
        ({'api_url': 'https://192.0.2.1', 'ca_file': '/dev/null'}, 'ca_file: '),
        ({'primaries': NAMED_PRIMARY}, 'primaries: ')],
    'pdns-native': [
        ({'kind': 'Slave'}, 'kind: '), ({'api_key': 'a b'}, 'api_key: '), ({'server_id': 'a/b'}, 'server_id: '),
        ({'api_url': 'ftp://192.0.2.1'}, 'api_url: '), ({'ca_file': '/nowhere'}, 'ca_file: '),
        ({'policy': 'whatever'}, 'policy: ')],
    'octodns': [
        ({'class': None}, 'class: it must be given'), ({'class': 'octodns_nowhere.Provider'}, 'octodns_nowhere'),
        ({'class': 'octodns.processor.acme.AcmeManagingProcessor'}, 'cannot be imported|no subclass of octo'),
        ({'class': 'octodns_bind.AxfrSource'}, "no subclass of octoDNS's BaseProvider"),
        ({'settings': '{host: 192.0.2.1}'}, 'api_key'), ({'settings': '{api_key: "half'}, 'settings: it is not YAML'),
        ({'settings': '{api_key: env/NOTHING_OF_THE_KIND}'}, 'no variable NOTHING_OF_THE_KIND'),
        ({'policy': 'whatever'}, 'policy')]}


def server(driver: str, **facts: Any) -> Server:
    fields = {name: facts.pop(name) for name in ('primaries', 'tsig_key') if name in facts}
    return Server(new_id(), driver, '192.0.2.1', **fields, options=WORKING[driver] | facts)


@pytest.mark.filterwarnings('ignore::DeprecationWarning')  # octodns-powerdns uses what octoDNS 1.22 calls old
@pytest.mark.parametrize(('driver', 'facts', 'said'), [
    (driver, facts, said) for driver, cases in WRONG.items() for facts, said in cases])
def test_options_that_cannot_work_are_named(driver: str, facts: dict[str, Any], said: str) -> None:
    backends.build(server(driver)).close()
    with pytest.raises(InvalidField, match=said) as raised:
        backends.build(server(driver, **facts))
    assert 'secret@' not in str(raised.value) and 'key=secret' not in str(raised.value)


@pytest.mark.parametrize('driver', ['bind9', 'knot', 'pdns'])
def test_without_primaries_no_zone_can_be_created(driver: str) -> None:
    result = backends.build(server(driver)).create_domain(a_domain())
    assert 'has no primaries' in str(result.error)
    assert not result.retryable
