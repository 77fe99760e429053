"""Functions that make each service from the configuration.

Each imports its service by itself: a process has the code of what it serves in memory, and of nothing else.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import secrets
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from oslo_config import cfg

from designate_pool import backends
from designate_pool.api.auth.reloaded_file import ReloadedFile, file_stamp
from designate_pool.concurrency import Runtime
from designate_pool.config.load import Settings
from designate_pool.config.sections import check_installed, others
from designate_pool.errors import BadConfiguration, BadInput
from designate_pool.model import Endpoint, Pool
from designate_pool.protocol import tls
from designate_pool.rpc import central, minidns, pool_manager
from designate_pool.rpc.change_announcer import ChangeAnnouncer
from designate_pool.rpc.client import Check
from designate_pool.rpc.direct import Direct
from designate_pool.rpc.notifications import SILENT, Notification, NotificationListener, Sink
from designate_pool.settings import KEYSTONE, MiniDnsSettings, PoolManagerSettings
from designate_pool.sink.handlers import ADDRESS_HANDLERS, NotificationHandler
from designate_pool.sink.service import MakeHandler, SinkService
from designate_pool.storage.sql.database import Storage

if TYPE_CHECKING:
    from oslo_policy import policy as oslo

    from designate_pool.api.services.zone_watcher import ZoneWatcher
    from designate_pool.cmd.compose.api_guard import ApiGuard

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceParts:
    """What services are made of.

    :ivar conf: oslo.config's object, for libraries that read their own sections
    :ivar read_pool: reads the configuration's pool again; raises a PoolError when it is wrong
    :ivar parts: the services of this process, keys of :data:`SERVICES`
    :ivar caller: a :class:`designate_pool.rpc.client.RpcServer`
    :ivar notifications: where the services that change something send it
    :ivar background_work: whether Central does long work in this process
    :ivar services: those that have started, by their keys
    """

    runtime: Runtime
    conf: cfg.ConfigOpts
    settings: Settings
    pool: Pool
    read_pool: Callable[[], Pool]
    storage: Storage
    parts: Sequence[str]
    metrics: Sequence[Endpoint]
    caller: Any
    notifications: Sink = SILENT
    background_work: bool = True
    services: dict[str, Any] = dataclasses.field(default_factory=dict)


class Service(Protocol):
    """A service that has started."""

    def stop(self) -> None:
        """Finish what is under way, and stop."""


def build_central(parts: ServiceParts) -> Service:
    """Start Central, and serve its topic."""
    from designate_pool.central.service import Central

    service = Central(parts.storage, pool_manager.PoolManagerClient(parts.caller), parts.runtime,
                      settings=parts.settings.central, notifications=parts.notifications,
                      announcer=ChangeAnnouncer(parts.caller, parts.runtime))
    service.start(parts.background_work)
    parts.caller.serve(central.TOPIC, central.CentralClient, service)
    return service


def build_pool_manager(parts: ServiceParts) -> Service:
    """Start the pool manager, and serve its pool's two topics."""
    from designate_pool.pool_manager.manager import Manager
    from designate_pool.pool_manager.server_registry import ServerRegistry, ServerSettingsCache
    from designate_pool.pool_manager.service import PoolManager

    settings = manager_settings(parts.settings, bool(parts.metrics))
    manager = Manager(parts.pool, backends.build_all(parts.pool), parts.storage, central.CentralClient(parts.caller),
                      minidns.MiniDnsClient(parts.caller), parts.runtime, settings)
    cache = ServerSettingsCache(os.path.join(parts.settings.process.state_path,
                                             f'servers-of-{quote(parts.pool.name, "")}.json'))
    others = None if isinstance(parts.caller, Direct) else pool_manager.PoolManagerClient(parts.caller)
    registry = ServerRegistry(manager, parts.runtime, parts.read_pool, cache,
                              ChangeAnnouncer(parts.caller, parts.runtime))
    service = PoolManager(manager, registry, parts.runtime, others)
    service.start()
    contract = pool_manager.PoolManagerClient
    parts.caller.serve(pool_manager.topic(parts.pool.name), contract, service, rank=0)
    parts.caller.serve(pool_manager.topic(parts.pool.name, spread=True), contract, service)
    return service


def build_minidns(parts: ServiceParts) -> Service:
    """Start MiniDNS, serve its topics, and have the pool managers repeat their polls."""
    from designate_pool.minidns.service import MiniDns

    settings = parts.settings.minidns
    service = MiniDns(parts.storage, parts.pool, settings,
                      pool_manager.PoolManagerClient(parts.caller), parts.runtime, read_pool=parts.read_pool,
                      central=central.CentralClient(parts.caller),
                      tls_context=tls_context(settings) if settings.listen_tls else None)
    service.start()
    contract = minidns.MiniDnsClient
    parts.caller.serve(minidns.topic(parts.pool.name), contract, service,
                       rank=0 if service.is_first_primary_of(parts.pool.servers) else 1)
    parts.caller.serve(minidns.topic(parts.pool.name, spread=True), contract, service)
    parts.caller.serve(minidns.SHARED_TOPIC, contract, service)
    if not isinstance(parts.caller, Direct):  # a pool manager of the same process repeats the polls at its own start
        service.announce()
    return service


def tls_context(settings: MiniDnsSettings) -> Callable[[], ssl.SSLContext]:
    """What TLS of MiniDNS needs, made anew when a file has changed: a context in use would not survive a wrong key.

    :raises BadConfiguration: when the files are wrong
    """
    paths = (settings.tls_certificate or '', settings.tls_key or '', settings.tls_client_ca)

    def read() -> ssl.SSLContext:
        try:
            return tls.server_context(*paths)
        except OSError as error:
            raise BadConfiguration(count=1, listing=(
                f'\n  [service:minidns] tls_certificate, tls_key, tls_client_ca ({", ".join(filter(None, paths))}): '
                f'{tls.failure(error)}')) from None

    return ReloadedFile('certificate of MiniDNS', read, lambda: tuple(map(file_stamp, filter(None, paths))), 1.0).get


def make_application(parts: ServiceParts) -> tuple[Callable[..., Any], ZoneWatcher, ApiGuard]:
    """The API as a WSGI application, and what has to be started and stopped for it, and reads its files again."""
    from designate_pool.api.app import create_app
    from designate_pool.api.http.limits import RequestLimits
    from designate_pool.api.services.neutron import NeutronClient
    from designate_pool.api.services.zone_task_store import ZoneTaskStore
    from designate_pool.api.services.zone_watcher import ZoneWatcher
    from designate_pool.cmd.compose.api_guard import ApiGuard

    settings = parts.settings.api
    watcher = ZoneWatcher(parts.storage, settings)
    guard = ApiGuard(settings, parts.conf)
    app = create_app(parts.services['central'], parts.pool, settings,
                     pool_managers=pool_manager.PoolManagerClient(parts.caller),
                     check_broker=Check('the broker', functools.partial(parts.caller.ping, central.TOPIC)),
                     storage=parts.storage, watcher=watcher, gate=guard.gate,
                     tasks=ZoneTaskStore(parts.storage, settings.pending_imports, parts.notifications),
                     check_project=guard.check_project,
                     neutron=NeutronClient(parts.settings.neutron) if settings.auth == KEYSTONE else None)
    return RequestLimits(guard.around(app), settings), watcher, guard


def build_api(parts: ServiceParts) -> Service:
    """Start the API at all of its addresses; Central has to be among ``parts.services``."""
    from designate_pool.api.http.server import ApiServer

    settings = parts.settings.api
    application, watcher, guard = make_application(parts)
    # The watcher stops first: it ends the waiting requests.
    parts_of_api: list[Any] = [watcher, *(ApiServer(application, endpoint, settings) for endpoint in settings.listen)]
    for part in parts_of_api:
        part.start()
    return ServiceGroup(parts_of_api, guard.reload)


def enforcer() -> oslo.Enforcer:
    """Our defaults, which the policy file of the command's configuration overrides."""
    from designate_pool.api.auth import policy

    return policy.make_enforcer(cfg.CONF)


def build_sink(parts: ServiceParts) -> Service:
    """Start Sink; BadInput when no handler is configured, or one cannot be made."""
    settings = parts.settings.sink
    check_installed(settings)
    if not settings.handlers and not settings.others:
        raise BadInput(why='[service:sink] enabled_notification_handlers has to name a handler')
    for handler in settings.handlers:
        if handler.format:
            LOG.warning('[%s] format has no effect: use formatv4 and formatv6', handler.SECTION)
    enabled: list[MakeHandler] = [functools.partial(ADDRESS_HANDLERS[handler.name], handler)
                                  for handler in settings.handlers]
    enabled += [functools.partial(_make_other, name, options) for name, options in settings.others.items()]

    def listen(sources: Iterable[tuple[str, str]], types: Iterable[str],
               handle: Callable[[Notification], bool]) -> list[NotificationListener]:
        return [NotificationListener(parts.conf, sources, types, handle, settings.listener_pool_name,
                                     threads=settings.threads) for _ in range(settings.workers)]

    service = SinkService(enabled, central.CentralClient(parts.caller), listen)
    service.start()
    return service


def _make_other(name: str, options: Mapping[str, Sequence[str]],
                zone_name: Callable[[str], str]) -> NotificationHandler:
    """A handler that others have written; BadInput when it cannot be made."""
    try:
        kind = others()[name].load()
        if not issubclass(kind, NotificationHandler):
            raise TypeError(f'it is no subclass of {NotificationHandler.__module__}.{NotificationHandler.__name__}')
        handler: NotificationHandler = kind(name, options, zone_name)
        vars(handler)['name']
    except Exception as error:  # handlers are others' code
        raise BadInput(why=f'[handler:{name}] the handler cannot be made ({type(error).__name__}: {error})') from error
    return handler


class ServiceGroup(Service):
    """Several services that stop as one; *reload* reads their files again."""

    def __init__(self, services: Sequence[Any], reload: Callable[[], None]) -> None:
        self._services = services
        self.reload = reload

    def stop(self) -> None:
        """Stop them one by one, in their order."""
        for service in self._services:
            service.stop()


def manager_settings(settings: Settings, measured: bool = False) -> PoolManagerSettings:
    """The pool manager's settings, with a name unique to this process, which serves its metrics or not."""
    name = f'{settings.process.host[:40]}:{os.getpid()}:{secrets.token_hex(3)}'
    return dataclasses.replace(settings.pool_manager, name=name, measured=measured)


SERVICES: dict[str, Callable[[ServiceParts], Service]] = {
    'central': build_central,
    'minidns': build_minidns,
    'pool_manager': build_pool_manager,
    'api': build_api,
    'sink': build_sink,
}
