"""``designate-pool-manage config check`` against real servers, and against answers that no server here would give."""

from __future__ import annotations

import contextlib
import json
import pathlib
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import dns.message
import dns.rcode
import dns.tsig
import pytest

from designate_pool import __version__
from designate_pool.cmd.programs import daemons, webhook
from designate_pool.model import Endpoint, TsigKey
from designate_pool.testing import opened
from testing import warm
from testing.bind import Named
from testing.certificates import self_signed
from testing.databases import upgraded_sqlite
from testing.knot import Knotd
from testing.minidns import MiniDnsProcess
from testing.nsd import Nsd
from testing.pdns import PowerDns
from testing.processes import free_port
from testing.stack import manage
from tests.fixtures.answering import Scripted, soa_answer
from tests.fixtures.nameservers import SecondaryServer

KEY = TsigKey('transfer.example.', 'hmac-sha256', 'dHJhbnNmZXIga2V5IGZvciB0ZXN0cyBvbmx5')
OTHER = 'YW5vdGhlciBrZXkgZm9yIHRlc3RzIG9ubHk='
SECRETS = (KEY.secret, OTHER)
#: The exit code and what was printed.
Check = Callable[..., tuple[int, str]]


@pytest.fixture
def check(tmp_path: pathlib.Path) -> Check:
    """Run the check on a configuration of these sections; no secret may be in what it prints."""
    (tmp_path / 'keys').mkdir()
    database = upgraded_sqlite(tmp_path / 'pool.sqlite')

    def check(*sections: str, words: tuple[str, ...] = ()) -> tuple[int, str]:
        path = tmp_path / 'pool.conf'
        path.write_text('\n'.join([f'[database]\nconnection = {database}', '[service:pool_manager]\npoll_timeout = 1',
                                   *sections]))
        path.chmod(0o600)
        code, printed, errors = manage(path, 'config', 'check', *words)
        assert errors == ''
        assert not any(secret in printed for secret in SECRETS)
        return code, printed

    return check


def keyed(key: TsigKey = KEY, secret: str = KEY.secret) -> str:
    return f'{key.name}:{key.algorithm}:{secret}'


def a_section(scripted: Scripted, **options: object) -> str:
    """A server that does as it is told, and answers DNS by a script."""
    lines = [f'[backend:fake:{uuid.uuid4()}]', f'host = {scripted.host}', f'port = {scripted.port}']
    return '\n'.join([*lines, *(f'{name} = {value}' for name, value in options.items())]) + '\n'


@pytest.fixture
def scripted() -> Iterator[Callable[..., Scripted]]:
    """Starts a :class:`Scripted`."""
    started: list[Scripted] = []

    def start(script: Callable[[dns.message.Message], dns.message.Message | bytes]) -> Scripted:
        server = Scripted(lambda query, over_tcp: [script(query)],
                          keyring=dns.tsig.Key(KEY.name, KEY.secret, KEY.algorithm))
        started.append(server)
        return server

    yield start
    for server in started:
        server.close()


def refused(query: dns.message.Message) -> dns.message.Message:
    return soa_answer(query, 0, rcode=dns.rcode.REFUSED)


MAKES: dict[str, type[Any]] = {'bind9': Named, 'nsd': Nsd, 'knot': Knotd, 'pdns': PowerDns}
PRIMARY = Endpoint('127.0.0.1', free_port())
#: What is said of another secret, over the control channel or over DNS.
OTHER_SECRET = {
    'bind9': ('the server has another secret for the key transfer.example. (BADSIG)',),
    'nsd': ('NSD has another secret or algorithm for the TSIG key transfer.example.',
            'the server has another secret for the key transfer.example. (BADSIG)'),
    'knot': ('transfer.example.: the server rejects the TSIG key: the server has another secret for '
             'the key transfer.example. (BADSIG)',),
    'pdns': ('PowerDNS has another secret for the TSIG key transfer.example',
             'the answer is not signed (NOTAUTH)'),
}


@pytest.fixture(scope='module', params=MAKES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    running = MAKES[request.param](tmp_path_factory.mktemp(request.param), keys=[KEY]).start()
    running.make = request.param
    yield running
    running.remove()


@pytest.fixture
def about(check: Check, server: Any) -> Callable[[TsigKey], tuple[int, str]]:
    """The exit code of the check, and what it says of the server when its section has this key."""
    def check_with(key: TsigKey) -> tuple[int, str]:
        # NSD's pattern names the key that it has.
        section = server.section(str(uuid.uuid4()), [PRIMARY], tsig_key=keyed())
        code, printed = check(section.replace(keyed(), f'{key.name}:{key.algorithm}:{key.secret}'))
        return code, printed.partition('MiniDNS at')[0]

    return check_with


class TestMakes:
    def test_in_good_order_and_nothing_is_left_there(self, server: Any, about: Callable[..., tuple[int, str]]) -> None:
        for _ in range(2):
            assert about(KEY) == (0, f'ok  {server.make}:127.0.0.1:{server.port}\n')
        assert listed(server) == {}

    def test_another_secret(self, server: Any, about: Callable[..., tuple[int, str]]) -> None:
        code, printed = about(TsigKey(KEY.name, KEY.algorithm, OTHER))
        assert code == 1
        findings = [line.strip().removeprefix('error: ') for line in printed.splitlines() if ' error: ' in line]
        assert tuple(findings) == OTHER_SECRET[server.make]
        assert listed(server) == {}

    def test_a_key_that_it_does_not_have(self, server: Any, about: Callable[..., tuple[int, str]]) -> None:
        code, printed = about(TsigKey('other.example.', KEY.algorithm, OTHER))
        assert code == 1
        assert 'other.example' in printed


def test_each_of_three_keys_of_a_bind(check: Check, named: Callable[..., Named]) -> None:
    keys = [TsigKey(f'{name}.example.', KEY.algorithm, KEY.secret) for name in ('first', 'second', 'third')]
    bind = named(keys=keys)
    for key in keys:
        code, printed = check(bind.section(str(uuid.uuid4()), [PRIMARY], tsig_key=keyed(key)))
        assert (code, printed.partition('MiniDNS at')[0]) == (0, f'ok  bind9:127.0.0.1:{bind.port}\n')


@pytest.mark.parametrize(('sections', 'why'), [
    ('[oslo_policy]\npolicy_file = {folder}/none.yaml\n', 'there is no file {folder}/none.yaml'),
    ('[service:api]\nauth = keystone\n', 'auth: keystone needs more packages'),
], ids=['policy', 'keystone'])
def test_what_programs_load(sections: str, why: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch,
                            scripted: Callable[..., Scripted]) -> None:
    monkeypatch.setitem(sys.modules, 'keystonemiddleware', None)
    path = tmp_path / 'pool.conf'
    path.write_text(f'{sections.format(folder=tmp_path)}{a_section(scripted(refused))}')
    code, _, errors = manage(path, 'config', 'check', '--offline')
    assert code == 1 and why.format(folder=tmp_path) in errors


def listed(server: Any) -> dict[str, int | None]:
    with opened(server.server([PRIMARY], tsig_key=KEY)) as backend:
        listing = backend.list_zones([])
    assert listing.result.ok
    return dict(listing.serials)


def test_a_key_file_that_everybody_can_read(check: Check, named: Callable[..., Named]) -> None:
    bind = named()
    section = bind.section(str(uuid.uuid4()))
    (bind.folder / 'rndc.key').chmod(0o644)
    code, printed = check(section)
    assert code == 0 and f'-> chmod o= {bind.folder}/rndc.key' in printed
    (bind.folder / 'rndc.key').chmod(0o640)
    assert 'chmod' not in check(section)[1]


def test_the_files_for_tls(check: Check, scripted: Callable[..., Scripted], tmp_path: pathlib.Path) -> None:
    pair, other = self_signed(tmp_path / 'one'), self_signed(tmp_path / 'other')
    section = a_section(scripted(refused))

    def found(certificate: str, key: str, **more: str) -> str:
        options = {'listen_tls': '127.0.0.1:8853', 'tls_certificate': certificate, 'tls_key': key, **more}
        return check('[service:minidns]', *(f'{name} = {value}' for name, value in options.items()), section)[1]

    assert 'MiniDNS does not start here' not in found(*pair)
    assert 'key values mismatch' in found(pair.certificate, other.key)
    assert 'No such file or directory' in found(f'{pair.certificate}.none', pair.key)
    assert 'masters_ca: No such file or directory' in found(*pair, masters_ca=f'{pair.certificate}.none')
    pathlib.Path(pair.key).chmod(0o644)
    assert f'[service:minidns] tls_key: every user of this host can read or write it: {pair.key}' in found(*pair)


def test_the_files_for_tls_with_keystone_and_neutron(check: Check, scripted: Callable[..., Scripted],
                                                     tmp_path: pathlib.Path) -> None:
    pair, other, both = self_signed(tmp_path / 'one'), self_signed(tmp_path / 'other'), tmp_path / 'both'
    both.write_text(''.join(pathlib.Path(path).read_text() for path in pair))
    both.chmod(0o600)
    section = a_section(scripted(refused))

    def found(keystone: dict[str, str], neutron: dict[str, object]) -> list[str]:
        texts = ['\n'.join([f'[{name}]', *(f'{key} = {value}' for key, value in options.items())])
                 for name, options in (('keystone_authtoken', keystone), ('network_api:neutron', neutron))]
        code, printed = check('[service:api]\nauth = keystone', *texts, section)
        assert code == 0
        return [line.rpartition('warning: ')[2] for line in printed.splitlines() if 'warning' in line and (
            'keystone' in line or 'neutron' in line)]

    nobody, none, folder = 'the API asks nobody from here: ', f'{both}.none', {'cafile': str(tmp_path)}
    assert found({'cafile': pair.certificate, 'certfile': pair.certificate, 'keyfile': pair.key},
                 {'ca_certificates_file': both, 'client_certificate_file': both}) == []
    assert found(folder, {'ca_certificates_file': none}) == [
        f'{nobody}[network_api:neutron] ca_certificates_file: No such file or directory']
    assert found({'cafile': none, 'insecure': 'true'}, {'ca_certificates_file': none, 'insecure': True}) == []
    assert found({'cafile': pair.key}, {}) == [f'{nobody}[keystone_authtoken] cafile: no certificate or crl found']
    assert found({'certfile': pair.certificate, 'keyfile': other.key}, {'client_certificate_file': pair.key}) == [
        f'{nobody}[keystone_authtoken] certfile: key values mismatch',
        f'{nobody}[network_api:neutron] client_certificate_file: it has no certificate, or no key, in PEM form']
    both.chmod(0o644)
    all_may_read = f'every user of this host can read or write it: {both}'
    first, second = found({'certfile': str(both)}, {'client_certificate_file': both})
    assert first.startswith(f'[keystone_authtoken] keyfile: {all_may_read}')
    assert second.startswith(f'[network_api:neutron] client_certificate_file: {all_may_read}')


def test_an_address_at_which_a_server_is_verified(check: Check,
                                                  secondary_server: Callable[..., SecondaryServer]) -> None:
    server, public = secondary_server('hidden'), secondary_server('public')
    section = server.section(str(uuid.uuid4()), verify=f'127.0.0.1:{public.port}')
    assert first_line(check(section)) == (0, f'ok  secondary:127.0.0.1:{server.port}')
    public.stop()
    code, printed = check(section)
    assert code == 1 and f'it does not answer DNS at 127.0.0.1:{public.port}' in printed


def test_minidns_that_runs_not_yet_and_then_does(check: Check, secondary_server: Callable[..., SecondaryServer],
                                                 tmp_path: pathlib.Path) -> None:
    minidns = MiniDnsProcess(tmp_path, f'sqlite:///{tmp_path}/pool.sqlite', [], 'threading')
    section = secondary_server().section(str(uuid.uuid4())) + f'primaries = 127.0.0.1:{minidns.port}\n'
    code, printed = check(section)
    assert code == 0 and f'MiniDNS at 127.0.0.1:{minidns.port}:\n  warning: it does not answer DNS' in printed
    minidns.start()
    try:
        assert check(section)[1].splitlines()[1:] == [f'ok  MiniDNS at 127.0.0.1:{minidns.port}', 'ok  database']
    finally:
        minidns.stop()


@pytest.mark.parametrize(('rcode', 'code', 'words'), [
    (dns.rcode.NOTAUTH, 1, 'error: the answer is not signed (NOTAUTH)'),
    (dns.rcode.REFUSED, 0, 'warning: whether it knows the key transfer.example. cannot be told'),
])
def test_an_answer_without_a_signature(check: Check, scripted: Callable[..., Scripted], rcode: dns.rcode.Rcode,
                                       code: int, words: str) -> None:
    def unsigned(query: dns.message.Message) -> dns.message.Message:
        plain = dns.message.make_query(query.question[0].name, 'SOA', id=query.id)
        return soa_answer(plain, 0, rcode=rcode)

    found, printed = check(a_section(scripted(unsigned), tsig_key=keyed()))
    assert found == code and words in printed


def test_a_host_without_an_address(check: Check, scripted: Callable[..., Scripted]) -> None:
    section = a_section(scripted(refused), call_timeout=2).replace('host = 127.0.0.1', 'host = ns1.nowhere.invalid')
    code, printed = check(section)
    assert code == 1 and ('ns1.nowhere.invalid has no address' in printed or 'has not ended' in printed)


def test_a_primary_on_loopback_for_a_server_elsewhere(check: Check, scripted: Callable[..., Scripted]) -> None:
    server = scripted(refused)
    options = {'primaries': f'127.0.0.1:{server.port}', 'call_timeout': 0.5}
    elsewhere = a_section(server, **options).replace('host = 127.0.0.1', 'host = 192.0.2.1')
    code, printed = check(a_section(server, **options), elsewhere)
    assert code == 1
    here, there = printed.split('fake:192.0.2.1', 1)
    assert 'cannot transfer' not in here and f'it cannot transfer from 127.0.0.1:{server.port}' in there


def test_the_files_of_secrets(check: Check, scripted: Callable[..., Scripted], tmp_path: pathlib.Path) -> None:
    paths = [tmp_path / 'keys' / name for name in ('shared', 'own')]
    for path, text in zip(paths, (KEY.secret, keyed()), strict=True):
        path.write_text(text)
        path.chmod(0o640)
    sections = (f'[tsig:{KEY.name}]\nalgorithm = {KEY.algorithm}\nsecret = file:{paths[0]}\n',
                a_section(scripted(refused), tsig_key=KEY.name),
                a_section(scripted(refused), tsig_key=f'file:{paths[1]}'))
    code, printed = check(*sections)
    assert code == 0 and 'chmod' not in printed
    for path in paths:
        path.chmod(0o644)
    code, printed = check(*sections)
    assert code == 0
    assert printed.startswith('configuration:\n  warning: [tsig:transfer.example.] secret: every user of this host')
    assert [f'-> chmod o= {path}' in printed for path in paths] == [True, True]


def test_files_that_everybody_can_read_with_secrets_in_them(scripted: Callable[..., Scripted], tmp_path: pathlib.Path
                                                            ) -> None:
    database = tmp_path / 'pool.sqlite'
    url, path = upgraded_sqlite(database), tmp_path / 'pool.conf'
    database.chmod(0o644)
    shared = f'[database]\nconnection = {url}\n[service:pool_manager]\npoll_timeout = 1\n{a_section(scripted(refused))}'

    def warnings(text: str) -> list[str]:
        path.write_text(shared + text)
        path.chmod(0o644)
        _, printed, _ = manage(path, 'config', 'check')
        assert KEY.secret not in printed
        return [line.strip() for line in printed.splitlines() if 'every user' in line]

    assert warnings('') == [f'warning: [database] connection: every user of this host can read or write it: {database}'
                            ' has mode 0644']
    database.chmod(0o600)
    assert warnings('') == []
    (tmp_path / 'secret').write_text(KEY.secret)
    (tmp_path / 'secret').chmod(0o600)
    assert warnings(f'tsig_key = k\n[tsig:k]\nalgorithm = hmac-sha256\nsecret = file:{tmp_path}/secret\n') == []
    assert warnings(f'tsig_key = k\n[tsig:k]\nalgorithm = hmac-sha256\nsecret = {KEY.secret}\n') == [
        f'warning: [tsig:k] secret: every user of this host can read or write it: {path} has mode 0644']
    [line] = warnings(f'tsig_key = {keyed()}\n[DEFAULT]\ntransport_url = rabbit://me:word@127.0.0.1/\n')
    assert ' tsig_key and 1 more secrets: every user' in line
    assert warnings(f'[keystone_authtoken]\npassword = file:{tmp_path}/secret\n') == []
    (tmp_path / 'url').write_text(url)
    (tmp_path / 'url').chmod(0o644)
    shared = shared.replace(url, f'file:{tmp_path}/url')
    assert warnings('') == [f'warning: [database] connection: every user of this host can read or write it: {tmp_path}/'
                            'url has mode 0644']


def test_offline_nobody_is_asked(check: Check, scripted: Callable[..., Scripted]) -> None:
    server = scripted(refused)
    assert check(a_section(server), words=('--offline',)) == (0, f'1 server: fake:127.0.0.1:{server.port}\n')
    assert server.queries == []


def test_as_one_document(check: Check, scripted: Callable[..., Scripted]) -> None:
    code, printed = check(a_section(scripted(refused)), a_section(scripted(refused), on_create='refuse'),
                          words=('--json',))
    told = json.loads(printed)
    assert code == 1 and told['ok'] is False
    assert [[finding['serious'] for finding in server['findings']] for server in told['servers']] == [[], [True]]
    assert told['servers'][1]['findings'][0].keys() == {'what', 'advice', 'serious'}
    assert [len(server['id']) for server in told['servers']] == [32, 32] and len(told['primaries']) == 1
    assert told['configuration']['findings'] == told['database']['findings'] == []


def test_it_ends_when_every_server_is_silent(tmp_path: pathlib.Path) -> None:
    """Their ports are taken, and nothing comes back: neither an answer nor the news that nobody listens."""
    with contextlib.ExitStack() as opened, socket.create_server(('127.0.0.1', 0)) as control:
        silent = [opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(10)]
        for each in silent:
            each.bind(('127.0.0.1', 0))
        sections = [f'[backend:secondary:{uuid.uuid4()}]\nhost = 127.0.0.1\nport = {each.getsockname()[1]}\n'
                    f'control_port = {control.getsockname()[1]}\ncontrol_secret = x\ncall_timeout = 2\n'
                    f'primaries = 127.0.0.1:{free_port()}\n' for each in silent]
        path = tmp_path / 'pool.conf'
        path.write_text('\n'.join([f'[DEFAULT]\nstate_path = {tmp_path}', *sections]))
        begun = time.monotonic()
        done = warm.run('designate_pool.cmd.manage.app', '--config-file', str(path), 'config', 'check')
        took = time.monotonic() - begun
    assert (done.returncode, done.stderr) == (1, '')
    assert done.stdout.count('the control channel does not answer') == 10
    assert done.stdout.count('it does not answer DNS') == 20
    assert took < 20, 'the servers were looked at one after the other'


def first_line(result: tuple[int, str]) -> tuple[int, str]:
    code, printed = result
    return code, printed.splitlines()[0]


PROGRAMS = [*(('programs.daemons', name) for name in daemons.PROGRAMS),
            *((module,) for module in ('programs.nameserver', 'programs.sync', 'programs.webhook', 'manage.app'))]


@pytest.mark.parametrize('program', PROGRAMS, ids=' '.join)
def test_version_and_help(program: tuple[str, ...]) -> None:
    version = warm.run(f'designate_pool.cmd.{program[0]}', *program[1:], '--version')
    assert (version.returncode, version.stdout.split()[-1], version.stderr) == (0, __version__, '')
    shown = warm.run(f'designate_pool.cmd.{program[0]}', *program[1:], '--help')
    _, sentence, *_ = shown.stdout.split('\n\n')
    assert shown.returncode == 0
    assert sentence[0].isupper() and sentence.endswith('.')


def test_the_webhook_takes_a_ttl_as_the_command_does() -> None:
    assert webhook._parser().parse_args(['--ttl', '1h']).ttl == 3600
    assert webhook._parser().parse_args([]).ttl == 300
