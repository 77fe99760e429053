"""The programs of the kit, as far as they run without servers."""

from __future__ import annotations

import importlib
import pathlib
import pkgutil

import pytest

from tests import torture

MODULES = [each.name for each in pkgutil.iter_modules([str(pathlib.Path(torture.__file__).parent)])]


@pytest.mark.parametrize('name', MODULES)
def test_every_module_finds_what_it_imports(name: str) -> None:
    """Several are imported by ``make torture`` and ``make torture-selftest`` alone."""
    importlib.import_module(f'{torture.__name__}.{name}')
