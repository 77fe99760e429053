"""The programs of the kit, as far as they run without servers."""

from __future__ import annotations

import importlib
import pathlib
import pkgutil

import pytest

from designate_pool.settings import DatabaseSettings
from testing.databases import MAX_CONNECTIONS
from tests import torture
from tests.torture import lab

MODULES = [each.name for each in pkgutil.iter_modules([str(pathlib.Path(torture.__file__).parent)])]


def test_the_database_accepts_the_connections_of_all_services() -> None:
    """A cut link or many late messages have all of them open what they may."""
    pool_size = DatabaseSettings().pool_size
    assert MAX_CONNECTIONS >= 2 * pool_size * len(lab.SERVICES) + 50


@pytest.mark.parametrize('name', MODULES)
def test_every_module_finds_what_it_imports(name: str) -> None:
    """Several are imported by ``make torture`` and ``make torture-selftest`` alone."""
    importlib.import_module(f'{torture.__name__}.{name}')
