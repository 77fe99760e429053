"""The drivers, one per kind of server; each is a subclass of :class:`designate_pool.backends.base.Backend`.

The drivers of this project are in the table DRIVERS; other packages have theirs as entry points of the group
``designate_pool.backends``.  A driver is imported when it is first used.
"""

from __future__ import annotations

import functools
import importlib.metadata
import uuid
from collections.abc import Iterator, Mapping

from designate_pool import model
from designate_pool.backends.base import MAX_RECORDS_PER_TYPE, Backend
from designate_pool.errors import BadConfiguration, InvalidField
from designate_pool.protocol.rules import ServerLimit

GROUP = 'designate_pool.backends'
OUR_PACKAGE = 'designate-pool'

#: The class of each driver, by its word in ``[backend:<driver>:<uuid>]``.  This is a table instead of entry points so
#: that a checkout finds them whatever version of it is installed.
DRIVERS = {
    'bind9': 'designate_pool.backends.bind9.driver:Bind9',
    'catalog': 'designate_pool.backends.catalog:Catalog',
    'fake': 'designate_pool.backends.fake:Fake',
    'knot': 'designate_pool.backends.knot.driver:Knot',
    'nsd': 'designate_pool.backends.nsd.driver:Nsd',
    'octodns': 'designate_pool.backends.records:Octodns',
    'pdns': 'designate_pool.backends.pdns:Pdns',
    'pdns-native': 'designate_pool.backends.records:PdnsNative',
    'rfc2136': 'designate_pool.backends.records:Rfc2136',
    'secondary': 'designate_pool.backends.secondary:Secondary',
}


def driver_class(driver: str) -> type[Backend]:
    """The class of a driver; InvalidField if not exactly one package has it, or if it cannot be imported."""
    entry_points = _entry_points()
    if driver not in entry_points:
        raise InvalidField(field='driver', why=f"'{driver}' is unknown; known are {', '.join(sorted(entry_points))}")
    packages = sorted(package for package, _ in entry_points[driver])
    if len(packages) > 1:
        raise InvalidField(field='driver', why=f"several packages have a driver '{driver}': {', '.join(packages)}; "
                                               'uninstall all but one')
    [(package, entry_point)] = entry_points[driver]
    where = f"the driver '{driver}' of the package {package} ({entry_point.value})"
    try:
        loaded = entry_point.load()
    except Exception as error:  # a module may raise anything when it is imported
        why = f'{where} cannot be imported: {type(error).__name__}: {error}'
        raise InvalidField(field='driver', why=why) from error
    if not (isinstance(loaded, type) and issubclass(loaded, Backend)):
        raise InvalidField(field='driver', why=f'{where} is not a subclass of {Backend.__module__}.Backend')
    return loaded


def limits_of(server: model.Server) -> list[ServerLimit]:
    """What *server* does not take of a zone, by its driver and its section."""
    capabilities = driver_class(server.driver).capabilities
    limits = list(capabilities.limits)
    if capabilities.fed_by_records:
        limits.append(ServerLimit('signatures', 0, 'it is fed record by record'))
    elif server.options.get('ixfr'):  # of PowerDNS, which does not notice in a transfer of changes that they are signed
        limits.append(ServerLimit('signatures', 0, 'with ixfr = true it does not serve signed zones rightly'))
    most = server.options.get(MAX_RECORDS_PER_TYPE.name, MAX_RECORDS_PER_TYPE.default)
    return [limit._replace(limit=most) if limit.what == 'records' else limit for limit in limits
            if limit.what != 'records' or most]


def build(server: model.Server) -> Backend:
    """Make the driver of *server*; InvalidField for an unknown one, or an option's value that it cannot use."""
    return driver_class(server.driver)(server)


def build_for(pool: model.Pool, server: model.Server) -> Backend:
    """Make the driver of a server of *pool*; InvalidField also when it needs a catalog zone and the pool has none."""
    if driver_class(server.driver).capabilities.reads_catalog and pool.catalog_zone is None:
        raise InvalidField(field='driver', why='it requires the option catalog_zone of [service:pool_manager]')
    return build(server)


def build_all(pool: model.Pool, kept: Mapping[str, Backend] | None = None) -> dict[str, Backend]:
    """Make the drivers of all servers of *pool*, by server id.

    :param kept: existing drivers; those whose server has the same settings, secrets included, are used again
    :raises BadConfiguration: with all mistakes
    """
    kept = kept or {}
    built: dict[str, Backend] = {}
    mistakes: list[str] = []
    for server in pool.servers:
        here = kept.get(server.id)
        try:
            built[server.id] = here if here is not None and here.server == server else build_for(pool, server)
        except InvalidField as error:
            mistakes.append(f'\n  [backend:{server.driver}:{uuid.UUID(server.id)}] {error.kwargs["field"]}: '
                            f'{error.kwargs["why"]}')
    if mistakes:
        raise BadConfiguration(count=len(mistakes), listing=''.join(mistakes))
    return built


def options() -> Mapping[str, tuple[model.Option, ...]]:
    """The options of each driver, by its word; a lookup imports the driver, and raises what that raises."""
    return _Options()


class _Options(Mapping[str, tuple[model.Option, ...]]):
    def __getitem__(self, driver: str) -> tuple[model.Option, ...]:
        if driver not in _entry_points():
            raise KeyError(driver)
        return driver_class(driver).OPTIONS

    def __contains__(self, driver: object) -> bool:
        return driver in _entry_points()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(_entry_points()))

    def __len__(self) -> int:
        return len(_entry_points())


@functools.cache
def _entry_points() -> dict[str, list[tuple[str, importlib.metadata.EntryPoint]]]:
    entry_points = {driver: [(OUR_PACKAGE, importlib.metadata.EntryPoint(driver, where, GROUP))]
                    for driver, where in DRIVERS.items()}
    for entry_point in importlib.metadata.entry_points(group=GROUP):
        package = entry_point.dist.name if entry_point.dist else 'without a name'
        entry_points.setdefault(entry_point.name, []).append((package, entry_point))
    return entry_points
