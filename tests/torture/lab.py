"""The whole system in a network of its own: database, broker, name servers of every make, and two of each service."""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import datetime
import functools
import io
import pathlib
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from oslo_config import cfg

from designate_pool.cmd.manage import api_tokens, app
from designate_pool.model import Endpoint, TsigKey
from testing.bind import Named
from testing.daemon import Daemon
from testing.knot import Knotd
from testing.nsd import Nsd
from testing.pdns import PowerDns
from testing.stack import NAME_SERVERS, QUICK
from tests.torture import name_servers
from tests.torture.backends import BACKENDS, make_broker, make_database
from tests.torture.commit_proxy import CommitProxy
from tests.torture.network import Host, Network
from tests.torture.nodes import Node, ServerNode, ServiceNode, Supervisor, build_clock

#: Of the servers that there are, these serve an ACTIVE change at least.
THRESHOLD = 60
#: Seconds in which nodes start again.
STARTING = 120.0
#: How often a name server is asked before it counts as silent, and the seconds that it has for each answer.
_TRIES, _ANSWERING = 4, 3.0
#: Seconds that a pool manager keeps what it has claimed.
CLAIM_SECONDS = 5
#: Seconds that servers of a stage serve a change, and the first of them, which keeps its address.
BAKE, CANARY = 1.5, 'knot1'
MANAGER = {**QUICK, 'claim_seconds': str(CLAIM_SECONDS), 'threshold_percentage': str(THRESHOLD),
           'contents_audit_interval': '10', 'extra_zones_interval': '10', 'max_deletes_per_hour': '0',
           'release_bake': str(BAKE)}
#: Of servers that are fed by records: others write there too, no plan waits for an operator, and zones are compared as
#: often as those of other servers.
_FED = {'ownership': 'database', 'policy': 'sync', 'update_pcent_threshold': '1', 'delete_pcent_threshold': '1',
        'audit_interval': '10'}
#: Two users who must not see each other's, and one who may see all.
TENANTS = {'ada': ('blue', 'member'), 'bea': ('green', 'member'), 'olga': ('operators', 'admin')}
SERVICES = ('central1', 'central2', 'manager1', 'manager2', 'minidns1', 'minidns2', 'api1', 'api2')
_API_PORT, _MINIDNS_PORT = 9001, 5354
KEY = TsigKey('transfer.example.com.', 'hmac-sha256', base64.b64encode(b'torture' * 5).decode())
#: What allows the observer and the pool managers to transfer zones.
_OPEN_TO_ALL = f'''\
acl:
  - id: open
    action: transfer
    address: 0.0.0.0/0
  - id: signed
    action: transfer
    key: {KEY.name}
'''


#: Short times, so that keys wait for seconds.
_SIGNING = ''.join(f'''
[dnssec_policy:{name}]
denial = {denial}
dnskey_ttl = 1
propagation_delay = 0
parent_ds_ttl = 1
''' for name, denial in (('default', 'NSEC'), ('hashed', 'NSEC3')))


def _pdns(folder: pathlib.Path, host: Host, driver: str = 'pdns') -> Daemon:
    return PowerDns(folder, host=host.address, driver=driver, settings={
        'webserver-allow-from': '0.0.0.0/0', 'allow-axfr-ips': '0.0.0.0/0'})


#: Name servers that a pool can have.  NSD's database does not survive a full disk: without one, it transfers its zones
#: again.
SERVERS: dict[str, Callable[[pathlib.Path, Host], Daemon]] = {
    'bind1': lambda folder, host: Named(folder, host=host.address, clients=['any'], keys=[KEY]),
    'bind2': lambda folder, host: Named(folder, host=host.address, clients=['any']),
    'knot1': lambda folder, host: Knotd(folder, host=host.address, keys=[KEY], sections=_OPEN_TO_ALL,
                                        templates='    acl: [open, signed]\n'),
    'nsd1': lambda folder, host: Nsd(folder, host=host.address, clients=['0.0.0.0/0'], keys=[KEY], database=False),
    'pdns1': _pdns, 'native1': lambda folder, host: _pdns(folder, host, 'pdns-native')}
#: Those whose transfers, polls and NOTIFY are signed.
_KEYED = ('bind1', 'knot1', 'nsd1')


class Lab:
    """
    :param backend: of :data:`~tests.torture.backends.BACKENDS`
    :param concurrency: of the services
    :param servers: names in :data:`SERVERS`
    :param tell: takes a line about what happens
    :param environment: what the services have in theirs besides
    :param manager: options of the pool managers, in place of some in :data:`MANAGER`
    :param signing: whether zones can be signed; a pool with servers that are fed by records has no signed zones
    :ivar nodes: by name
    :ivar urls: of the APIs
    :ivar keyed: names of the servers whose transfers, polls and NOTIFY are signed
    :ivar keys: of those that let nobody transfer zones without, by id
    :ivar servers: where each server answers, by its id in the configuration
    :ivar release: the option of the pool managers, from the next :meth:`reload` on
    :ivar tokens: of :data:`TENANTS`
    """

    def __init__(self, backend: str = 'postgresql', concurrency: str = 'eventlet', seed: int = 0,
                 servers: Iterable[str] = tuple(SERVERS), tell: Callable[[str], None] = print,
                 environment: Mapping[str, str] = {}, manager: Mapping[str, str] = {},
                 signing: bool = False) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='torture-'))
        self.folder.chmod(0o755)
        self.concurrency = concurrency
        self._manager = {**MANAGER, **manager}
        self._signing = signing
        self.tell = tell
        self.release: str | None = None
        self.nodes: dict[str, Node] = {}
        self.server_nodes: dict[str, ServerNode] = {}
        self.tokens: dict[str, str] = {}
        self._end = contextlib.ExitStack()
        self._transport_url = self._database_url = ''
        self._manage_config = self.folder / 'manage.conf'
        try:
            self.network = Network(seed)
            self._end.callback(self.network.close)
            self._make(backend, servers, environment)
        except BaseException:
            self.close()
            raise

    def _make(self, backend: str, servers: Iterable[str], environment: Mapping[str, str]) -> None:
        self.database = make_database(BACKENDS[backend], self.network, self.folder)
        self.broker = make_broker(BACKENDS[backend], self.network, self.folder)
        for node in (*self.database.nodes, *self.broker.nodes):
            self._add(node)
        clock = build_clock(self.folder)
        self.server_nodes = {name: self._add_server(name, number, clock) for number, name in enumerate(servers, 1)}
        self.services = {name: self._add(ServiceNode(
            self.network.add(name), self.folder, name.rstrip('0123456789'), self._config, self.concurrency, clock,
            environment)) for name in SERVICES}
        self.urls = [f'http://{self.services[name].host.address}:{_API_PORT}' for name in ('api1', 'api2')]
        self.primaries = [Endpoint(self.services[name].host.address, _MINIDNS_PORT)
                          for name in ('minidns1', 'minidns2')]
        self.keyed = [name for name in self.server_nodes if name in _KEYED]
        self.keys = {self.server_nodes[name].server_id: KEY for name in self.keyed
                     if isinstance(self.server_nodes[name].daemon, Nsd)}

    @property
    def servers(self) -> dict[str, Endpoint]:
        return {node.server_id: node.endpoint for node in self.server_nodes.values()}

    def _add(self, node: Any) -> Any:
        self.nodes[node.name] = node
        return node

    def _add_server(self, name: str, number: int, clock: pathlib.Path) -> ServerNode:
        host = self.network.add(name)
        return self._add(ServerNode(host, self.folder, f'aaaaaaaa-0000-4000-8000-{number:012}',
                                    lambda folder: SERVERS[name](folder, host), clock))

    def __enter__(self) -> Lab:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self) -> None:
        with concurrent.futures.ThreadPoolExecutor(8) as starters:
            self._end.callback(self.database.close)
            database, broker = starters.submit(self.database.start), starters.submit(self.broker.start)
            for _ in starters.map(lambda node: node.run(), self.server_nodes.values()):
                pass
        self._database_url, self._transport_url = database.result(), broker.result()
        self._manage_config.write_text(self._text('kit', self.concurrency))
        (self.folder / 'tokens').touch(mode=0o600)
        (self.folder / 'signing.keys').write_text(base64.urlsafe_b64encode(b's' * 32).decode() + '\n')
        for name, (project, role) in TENANTS.items():
            self.tokens[name] = api_tokens.create(str(self.folder / 'tokens'), name, project, [role], None)
        self.manage('database', 'upgrade')
        self.manage('pool', 'set', 'default', '--name-server', *NAME_SERVERS)
        with concurrent.futures.ThreadPoolExecutor(len(self.services)) as starters:
            for _ in starters.map(lambda node: node.run(), self.services.values()):
                pass
        for node in self.nodes.values():
            node.wanted = True
        self.supervisor = self._end.enter_context(Supervisor(self.nodes, self.tell))

    def close(self) -> None:
        """End everything; what is left is removed with the namespaces."""
        for node in self.nodes.values():
            node.wanted = False
        for node in reversed(self.nodes.values()):
            node.resume()
            node.kill()
        self._end.close()
        for node in self.server_nodes.values():
            if node.daemon.short is not None:
                shutil.rmtree(node.daemon.short, ignore_errors=True)

    @property
    def database_url(self) -> str:
        """As the services have it: through the proxy."""
        return self._database_url

    @property
    def commits(self) -> CommitProxy:
        return self.database.commits

    def reload(self) -> None:
        """Let the services read their configuration anew, as it is now."""
        self._manage_config.write_text(self._text('kit', self.concurrency))
        for node in self.services.values():
            node.configure()
            node.signal(signal.SIGHUP)

    def manage(self, *arguments: str) -> str:
        """What ``designate-pool-manage`` prints.

        :raises AssertionError: when it does not succeed
        """
        code, told = self.try_manage(*arguments)
        assert code == 0, f'designate-pool-manage {arguments}: {code}\n{told}'
        return told

    def try_manage(self, *arguments: str) -> tuple[int, str]:
        """The exit code of ``designate-pool-manage``, and what it prints."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = app.main(['--config-file', str(self._manage_config), *arguments], cfg.ConfigOpts())
        return code, printed.getvalue()

    def restart_silent_servers(self) -> list[str]:
        """Start the name servers anew that run and do not answer; their names, when all nodes run.

        That is a fault of their own: processes of NSD wait for each other for ever now and then.
        """
        silent = [node for node in self.server_nodes.values() if node.running and is_silent(node.daemon)]
        for node in silent:
            self.start_anew(node)
        self.supervisor.wait(STARTING)
        return [node.name for node in silent]

    @staticmethod
    def start_anew(node: ServerNode) -> None:
        """Kill a name server for the supervisor to start."""
        node.kill()
        node.wanted = True

    def log_lines(self, since: datetime.datetime, until: datetime.datetime, text: str = '') -> list[str]:
        """What the services logged between two times of their clocks, with *text* in it, in order."""
        found = []
        for name, node in self.services.items():
            for line in node.log.read_text(errors='replace').splitlines():
                if str(since) <= line[:26] <= str(until) and text.rstrip('.') in line:
                    found.append((line[:26], f'{name}: {line}'))
        return [line for _, line in sorted(found)]

    def _config(self, node: ServiceNode) -> str:
        return self._text(node.name, node.concurrency, {
            'api': f'listen = {node.host.address}:{_API_PORT}',
            'minidns': f'listen = {node.host.address}:{_MINIDNS_PORT}'}.get(node.kind, ''), node.kind)

    def _text(self, name: str, concurrency: str, listen: str = '', kind: str = '') -> str:
        return '\n'.join([
            '[DEFAULT]', f'concurrency = {concurrency}', f'state_path = {self.folder / name}', f'host = {name}',
            f'transport_url = {self._transport_url}',
            '[oslo_messaging_rabbit]', *self.broker.options,
            '[database]', f'connection = {self._database_url}',
            '[service:central]', 'deleted_retention = 15',
            f'signing_keys_file = {self.folder / "signing.keys"}' if self._signing else '',
            'quota_zones = -1', 'quota_zone_recordsets = -1', 'quota_zone_records = -1',
            '[service:pool_manager]', *_lines(self._manager),
            *_lines({'release': self.release} if self.release else {}),
            '[service:minidns]',
            listen if kind == 'minidns' else 'listen = ' + ', '.join(map(str, self.primaries)),
            '[service:api]', listen if kind == 'api' else f'listen = 127.0.0.1:{_API_PORT}', 'auth = token',
            f'tokens_file = {self.folder / "tokens"}', 'rate_limit = 0',
            *([_SIGNING] if self._signing else ()),
            *(self._section(each) for each in self.server_nodes.values()), ''])

    def _section(self, node: ServerNode) -> str:
        options = {'tsig_key': f'{KEY.name}:{KEY.algorithm}:{KEY.secret}'} if node.name in self.keyed else (
            _FED if node.is_fed else {})
        daemon: Any = node.daemon
        return str(daemon.section(node.server_id, self.primaries, call_timeout=4, **options))


def _lines(options: Mapping[str, str]) -> list[str]:
    return [f'{name} = {value}' for name, value in options.items()]


def is_silent(daemon: Daemon) -> bool:
    """Whether it does not answer over UDP, over TCP or on its control channel: other processes of it may do."""
    questions = [functools.partial(daemon.query, '.', tcp=tcp, timeout=_ANSWERING) for tcp in (False, True)]
    return not all(any(_answers(ask) for _ in range(_TRIES)) for ask in questions) or (
        not _answers(lambda: name_servers.ask_control(daemon)))


def _answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except Exception:  # each channel has its own
        return False
    return True
