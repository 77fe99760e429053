"""Drivers: one per kind of server, each behind :class:`designate_pool.backends.base.Backend`."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Mapping

from designate_pool import model
from designate_pool.backends.base import Backend
from designate_pool.errors import BadConfiguration, InvalidField

#: The user's word in ``[backend:<driver>:<uuid>]``, and where its class is; imported when it is first wanted.
DRIVERS: dict[str, tuple[str, str]] = {
    'bind9': ('designate_pool.backends.bind9.driver', 'Bind9'),
    'catalog': ('designate_pool.backends.catalog', 'Catalog'),
    'fake': ('designate_pool.backends.fake', 'Fake'),
    'knot': ('designate_pool.backends.knot.driver', 'Knot'),
    'nsd': ('designate_pool.backends.nsd.driver', 'Nsd'),
    'octodns': ('designate_pool.backends.records.octodns', 'Octodns'),
    'pdns': ('designate_pool.backends.pdns.driver', 'Pdns'),
    'pdns-native': ('designate_pool.backends.records.pdns_native', 'PdnsNative'),
    'rfc2136': ('designate_pool.backends.records.rfc2136', 'Rfc2136'),
    'secondary': ('designate_pool.backends.secondary', 'Secondary'),
}


def driver_class(driver: str) -> type[Backend]:
    """The class behind the word *driver*.

    :raises InvalidField: when there is none
    """
    if driver not in DRIVERS:
        raise InvalidField(field='driver', why=f"'{driver}' is unknown; there are {', '.join(sorted(DRIVERS))}")
    module, name = DRIVERS[driver]
    found: type[Backend] = getattr(importlib.import_module(module), name)
    return found


def build(server: model.Server) -> Backend:
    """The driver of *server*, ready to be called.

    :raises InvalidField: for an unknown driver, or an option that its driver cannot work with
    """
    return driver_class(server.driver)(server)


def build_for(pool: model.Pool, server: model.Server) -> Backend:
    """:func:`build`, for a server of *pool*.

    :raises InvalidField: also when the pool lacks what the driver needs of it
    """
    if driver_class(server.driver).capabilities.reads_catalog and pool.catalog_zone is None:
        raise InvalidField(field='driver', why='it needs the option catalog_zone of [service:pool_manager]')
    return build(server)


def build_all(pool: model.Pool, kept: Mapping[str, Backend] | None = None) -> dict[str, Backend]:
    """The driver of each of the pool's servers, by server id.

    :param kept: drivers that are there already; those whose server is the same to the last secret are taken over
    :raises BadConfiguration: with all that is wrong
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


def options() -> dict[str, tuple[model.Option, ...]]:
    """What each driver takes in its sections of the configuration, by the driver's word."""
    return {driver: driver_class(driver).OPTIONS for driver in DRIVERS}
