"""Drivers: one per kind of server, each behind :class:`designate_pool.backends.base.Backend`."""

from __future__ import annotations

import importlib

from designate_pool import model
from designate_pool.backends.base import Backend
from designate_pool.errors import InvalidField

#: The user's word in ``[backend:<driver>:<uuid>]``, and where its class is; imported when it is first wanted.
DRIVERS: dict[str, tuple[str, str]] = {
    'bind9': ('designate_pool.backends.bind9', 'Bind9'),
    'fake': ('designate_pool.backends.fake', 'Fake'),
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


def options() -> dict[str, tuple[model.Option, ...]]:
    """What each driver takes in its sections of the configuration, by the driver's word."""
    return {driver: driver_class(driver).OPTIONS for driver in DRIVERS}
