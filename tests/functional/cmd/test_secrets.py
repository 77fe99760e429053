"""Secrets are read anew with the configuration, and are found nowhere but where they were put."""

from __future__ import annotations

import base64
import contextlib
import os
import pathlib
import re
import secrets
import signal
import sqlite3
import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dns.exception
import dns.query
import dns.tsig
import dns.xfr
import dns.zone
import pytest
from kombu.connection import Connection

from designate_pool.model import Endpoint, TsigKey
from designate_pool.signing import keys
from testing.asking import transfer
from testing.processes import wait_until
from testing.proxy import Proxy
from testing.rabbitmq import RabbitMq
from testing.stack import Stack
from tests.fixtures import nameservers
from tests.fixtures.mixed import signing
from tests.fixtures.nameservers import SecondaryServer

KEY = TsigKey('transfer.example.', 'hmac-sha256', base64.b64encode(b'a key for these tests, and no other').decode())


def test_a_new_secret_is_read_with_the_configuration_and_none_is_ever_shown(
        secondary_server: Callable[..., SecondaryServer], tmp_path: pathlib.Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    """The control secret is in a file, and the TSIG key in the environment of the program."""
    control_secret, wrong_secret = secrets.token_hex(16), secrets.token_hex(16)
    monkeypatch.setattr(nameservers, 'SECRET', control_secret)
    monkeypatch.setenv('POOL_TSIG_KEY', f'{KEY.name}:{KEY.algorithm}:{KEY.secret}')
    secret_file = tmp_path / 'control.secret'
    secret_file.touch(0o600)
    secret_file.write_text(control_secret + '\n')
    server, server_id = secondary_server(keys=[KEY]), str(uuid.uuid4())
    section = server.section(server_id, control_secret=f'file:{secret_file}', call_timeout=2,
                             tsig_key='env:POOL_TSIG_KEY')
    # The fixture's section has the secret itself, too.
    section = section.replace(f'control_secret = {control_secret}\n', '')
    stack, shown = Stack(tmp_path / 'stack', [section], f'sqlite:///{tmp_path}/pool.sqlite'), []
    stack.config.write_text(stack.config.read_text().replace('[DEFAULT]', '[DEFAULT]\ndebug = true', 1))
    stack.executed = True
    with stack:
        zone = stack.create_zone('example.com.')['id']
        stack.wait_for(zone)

        secret_file.write_text(wrong_secret)
        os.kill(stack.processes['all'].pid, signal.SIGHUP)
        wait_until(lambda: 'the configuration was read again' in stack.logs(), 'it is read')
        late = stack.create_zone('late.example.com.')['id']
        stack.wait_for(late, 'ERROR')
        for words in (('zone', 'explain', 'late.example.com.'), ('server', 'list'), ('server', 'show', server_id[:8]),
                      ('server', 'show', server_id[:8], '-f', 'json'), ('zone', 'show', 'late.example.com.')):
            shown.append(stack.command(*words))
        assert 'secret' in shown[0], 'why it failed is said'
        wait_until(lambda: 'DEBUG' in stack.logs(), 'it was tried again, which is told at DEBUG')
        check = stack._run('designate_pool.cmd.manage.app', '--config-file', str(stack.config), 'config', 'check',
                           code=1)
        shown += [check.stdout, check.stderr]

        secret_file.write_text(control_secret)
        assert 'joined' in stack.command('server', 'reload')
        stack.wait_for(late)
        assert server.serial('late.example.com.') == stack.zone(late)['serial']

        arguments = (pathlib.Path('/proc') / str(stack.processes['all'].pid) / 'cmdline').read_bytes().decode()
        logs = stack.processes['all'].log.read_text()
        assert 'DEBUG' in logs
        for secret in (control_secret, wrong_secret, KEY.secret):
            assert secret not in logs
            assert secret not in arguments
            assert all(secret not in text for text in shown)
        kept = list((stack.folder).glob('servers-of-*.json'))
        assert [path.stat().st_mode & 0o777 for path in kept] == [0o600]


class Watched(Stack):
    """A stack at DEBUG, its libraries too, that keeps what is seen of it.

    :param key: encrypts the secrets in its database
    :ivar shown: what commands have printed
    :ivar proxy: before the API
    """

    def __init__(self, folder: pathlib.Path, servers: Sequence[str], transport_url: str, key: bytes) -> None:
        self.shown: list[str] = []
        self._key_file = folder / 'secrets.key'
        super().__init__(folder, servers, f'sqlite:///{folder}/pool.sqlite', transport_url)
        self._key_file.touch(0o600)
        self._key_file.write_bytes(base64.urlsafe_b64encode(key))
        self.proxy = Proxy(self.api_port)
        self.url = f'http://127.0.0.1:{self.proxy.port}'

    def configure(self, path: pathlib.Path, servers: Sequence[str], threshold: int,
                  database_url: str | None = None) -> None:
        super().configure(path, servers, threshold, database_url)
        text = path.read_text().replace('[DEFAULT]', '[DEFAULT]\ndebug = true\ndefault_log_levels = amqp=DEBUG,'
                                                     'oslo_messaging=DEBUG,sqlalchemy=DEBUG', 1)
        path.write_text(text.replace('[database]', f'[database]\nsecrets_key_file = {self._key_file}', 1)
                        + '[oslo_messaging_notifications]\ndriver = messagingv2\n')

    def _manage(self, *arguments: str) -> tuple[int, str]:
        code, told = super()._manage(*arguments)
        self.shown.append(told)
        return code, told

    def _run(self, module: str, *arguments: str, code: int = 0  # type: ignore[override]
             ) -> subprocess.CompletedProcess[str]:
        done = super()._run(module, *arguments, code=code)
        self.shown += [done.stdout, done.stderr]
        return done


@contextlib.contextmanager
def listening(broker: RabbitMq) -> Iterator[Callable[[], bytes]]:
    """All messages that pass through a broker from now on, whoever sends them to whom, when asked for."""
    with Connection(broker.url.replace('rabbit:', 'amqp:', 1)) as connection:
        channel: Any = connection.default_channel
        queue = channel.queue_declare(exclusive=True).queue
        channel.queue_bind(queue, 'amq.rabbitmq.trace', '#')
        broker.control('trace_on')
        try:
            yield lambda: b'\n'.join(
                repr(message.headers).encode() + bytes(message.body)
                for message in iter(lambda: channel.basic_get(queue, no_ack=True), None))
        finally:
            broker.control('trace_off')


def forms(secret: bytes) -> Iterator[bytes]:
    """What a secret may be written as: octets, hexadecimal, a number, or Base64, also in the midst of it, as in PEM."""
    yield secret
    yield secret.hex().encode()
    yield str(int.from_bytes(secret)).encode()
    yield flat(repr(secret)[2:-1].encode())
    for offset in range(3):
        # Of the first and the last letters some bits are those of what is around.
        whole = (len(secret) + offset) // 3 * 3 - offset
        yield base64.b64encode(bytes(offset) + secret[:whole])[4 if offset else 0:].lower()


def flat(text: bytes) -> bytes:
    """Without what may part the letters of a secret, and with those of the common alphabet of Base64, in lower case."""
    return re.sub(rb'\\+[nr]|[\s\\\'":]', b'', text).translate(bytes.maketrans(b'-_', b'+/')).lower()


def leaks(hidden: Sequence[bytes], text: bytes) -> list[bytes]:
    """Those of the secrets that are in a text, in any form."""
    flattened = flat(text)
    return [secret for secret in hidden if any(form in text or form in flattened for form in forms(secret))]


@pytest.mark.slow
def test_keys_of_signed_zones_and_of_transfers_are_seen_nowhere(
        secondary_server: Callable[..., SecondaryServer], rabbitmq: RabbitMq, tmp_path: pathlib.Path) -> None:
    """Through the life of a signed zone, with errors: not in the database, in logs at DEBUG, in messages and
    notifications over the broker, in answers over HTTP, or in what commands print."""
    random = [secrets.token_bytes(32) for _ in range(3)]
    of_server, of_user, next_of_user = (TsigKey(name, 'hmac-sha256', base64.b64encode(each).decode())
                                        for name, each in zip(('server.', 'user.', 'user.'), random))
    at_rest = secrets.token_bytes(32)
    server = secondary_server(keys=[of_server])
    section = server.section(str(uuid.uuid4()), call_timeout=2,
                             tsig_key=f'{of_server.name}:{of_server.algorithm}:{of_server.secret}')
    with listening(rabbitmq) as messages, Watched(
            tmp_path / 'stack', [section, signing(tmp_path)], rabbitmq.url, at_rest) as stack:
        zone = stack.create_zone('example.com.', ttl=1)['id']
        other, lost = (stack.create_zone(name)['id'] for name in ('example.org.', 'example.net.'))
        stack.wait_for(zone)
        stack.request('POST', f'/v2/zones/{zone}/dnssec', 202)
        given = {'name': of_user.name, 'algorithm': of_user.algorithm, 'secret': of_user.secret, 'scope': 'ZONE',
                 'resource_id': zone}
        tsigkey = stack.request('POST', '/v2/tsigkeys', 201, json=given)['id']
        wait_until(lambda: serves(stack, of_user), 'MiniDNS has the key')
        stack.request('POST', '/v2/tsigkeys', 409, json=given)
        stack.request('POST', '/v2/tsigkeys', 400, json={**given, 'name': 'wrong.', 'secret': of_user.secret * 20})
        stack.command('tsigkey', 'set', tsigkey, '--secret', next_of_user.secret)
        wait_until(lambda: serves(stack, next_of_user) and not serves(stack, of_user), 'MiniDNS has the next one')
        for words in (['tsigkey', 'list'], ['tsigkey', 'show', tsigkey, '-f', 'json'], ['server', 'list']):
            stack.command(*words)
        with closed(stack, 'tsigkeys'):
            stack.request('POST', '/v2/tsigkeys', 500, json={**given, 'name': 'lost.'})

        files = tmp_path / 'keys'
        files.mkdir()
        stack.manage('dnssec', 'export', 'example.com', str(files))
        stack.command('zone', 'dnssec', 'roll', 'example.com', 'zsk')
        wait_until(lambda: 'MADE' not in stack.command('zone', 'dnssec', 'keys', 'example.com').upper(), 'it is there')
        (tmp_path / 'next').mkdir()
        stack.manage('dnssec', 'export', 'example.com', str(tmp_path / 'next'))
        private = {private_part(path.read_text()) for path in [*files.glob('*.private'),
                                                               *(tmp_path / 'next').glob('*.private')]}
        assert len(private) == 3
        with closed(stack, 'zone_keys'):
            stack.request('POST', f'/v2/zones/{lost}/dnssec', 202)
        imported = import_keys(stack, files)
        for words in (['zone', 'dnssec', 'show', 'example.com'], ['zone', 'dnssec', 'ds', 'example.com'],
                      ['zone', 'explain', 'example.com'], ['zone', 'validate', 'example.com'],
                      ['zone', 'show', 'example.org', '-f', 'json']):
            stack.command(*words)
        for path in ('/v2/pools', '/v2/servers', f'/v2/zones/{zone}/dnssec', f'/v2/zones/{zone}/versions',
                     f'/v2/zones/{zone}/recordsets', f'/v2/zones/{other}/servers', '/v2/zones'):
            stack.request('GET', path, 200)
        stack.manage('secrets', 'rotate')
        stack.manage('config', 'check')
        stack.request('DELETE', f'/v2/zones/{other}/dnssec?force=true', 204)
        stack.request('GET', f'/v2/zones/{other}/dnssec')
        stack.command('tsigkey', 'delete', tsigkey)
        stack.wait_for(zone)

        hidden = [*random, *private, *imported, at_rest, (tmp_path / 'signing.keys').read_bytes().strip()]
        for path in [*files.glob('*.private'), *files.glob('*.pem')]:
            assert leaks(hidden, path.read_bytes()), f'what is looked for is not found in {path}'
        with contextlib.closing(sqlite3.connect(tmp_path / 'stack/pool.sqlite')) as database:
            dump = '\n'.join(database.iterdump()).encode()
        seen = {'dump': dump, 'messages': messages(), 'HTTP': bytes(stack.proxy.answered),
                'commands': '\n'.join(stack.shown).encode(),
                **{path.name: path.read_bytes() for path in (tmp_path / 'stack').glob('*.log')},
                **{path.name: path.read_bytes() for path in (tmp_path / 'stack').glob('pool.sqlite*')}}
        for what, part in {'dump': b'zone_keys', 'messages': b'dns.tsigkey.create', 'HTTP': b'zone_not_signed',
                           'api.log': b'DEBUG', 'minidns.log': b'DEBUG', 'manager.log': b'DEBUG'}.items():
            assert part in seen[what], what
        assert {what: found for what, text in seen.items() if (found := leaks(hidden, text))} == {}
    stack.proxy.stop()


def serves(stack: Stack, key: TsigKey) -> bool:
    try:
        return bool(transfer(Endpoint('127.0.0.1', stack.minidns_port), 'example.com.', key))
    except (dns.exception.DNSException, EOFError, OSError):
        return False


@contextlib.contextmanager
def closed(stack: Stack, table: str) -> Iterator[None]:
    """The database fails whoever writes to a table."""
    name = stack.folder / 'pool.sqlite'
    with contextlib.closing(sqlite3.connect(name, timeout=30, isolation_level=None)) as database:
        database.execute(f'CREATE TRIGGER closed BEFORE INSERT ON {table} BEGIN DELETE FROM nowhere; END')
        try:
            yield
        finally:
            database.execute('DROP TRIGGER closed')


def private_part(text: str) -> bytes:
    """The key in a file of BIND's."""
    return base64.b64decode(text.split('PrivateKey: ')[1].split()[0])


def import_keys(stack: Stack, folder: pathlib.Path) -> list[bytes]:
    """Give example.org keys that it has elsewhere, in files that are right at last; the private parts."""
    made, paths = [], []
    for role in ('KSK', 'ZSK'):
        public, der = keys.generate(role)
        name = folder / f'elsewhere-{role}'
        body = base64.encodebytes(der).decode()
        paths.append(name.with_suffix('.pem'))
        paths[-1].write_text(f'-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n')
        name.with_suffix('.key').write_text(f'example.org. IN DNSKEY {int.from_bytes(public[:2])} 3 13 '
                                            f'{base64.b64encode(public[4:]).decode()}\n')
        made.append(der[36:68])
    right = paths[1].read_text()
    for wrong in (right.replace('A', 'B'), right[:100], paths[0].read_text()):
        paths[1].write_text(wrong)
        stack.manage('dnssec', 'import', 'example.org', *map(str, paths), code=1)
    stack.manage('dnssec', 'import', 'example.org', str(paths[0]), code=1)
    paths[1].write_text(right)
    stack.manage('dnssec', 'import', 'example.org', *map(str, paths))
    return made
