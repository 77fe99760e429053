"""Drivers of other packages, found by the entry points that these have installed."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator

import pytest

from designate_pool import backends
from designate_pool.config import pools
from designate_pool.errors import BadConfiguration, InvalidField
from designate_pool.model import Option, Server, new_id
from tests.unit.config.conftest import Read, read  # noqa: F401

SERVER = '11111111-1111-4111-8111-111111111111'
MODULE = '''
from designate_pool.backends.base import Backend
from designate_pool.model import Option
class Outside(Backend):
    OPTIONS = (Option('colour', 'A colour.', required=True),)
'''
Install = Callable[[str, str, str], None]


@pytest.fixture
def install(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package with one driver: its name, the driver's name and the text of its module."""
    monkeypatch.syspath_prepend(tmp_path)  # type: ignore[no-untyped-call]

    def install(package: str, driver: str, text: str) -> None:
        module = f'module_{new_id()}'
        (tmp_path / f'{module}.py').write_text(text)
        info = tmp_path / f'{package}-1.dist-info'
        info.mkdir()
        (info / 'METADATA').write_text(f'Metadata-Version: 2.1\nName: {package}\nVersion: 1\n')
        (info / 'entry_points.txt').write_text(f'[{backends.GROUP}]\n{driver} = {module}:Outside\n')
        backends._entry_points.cache_clear()

    backends._entry_points.cache_clear()
    yield install
    monkeypatch.undo()
    backends._entry_points.cache_clear()


def test_a_driver_is_found_by_its_entry_point(install: Install, read: Read) -> None:  # noqa: F811
    install('one', 'outside', MODULE)
    text = f'[service:minidns]\nlisten = 192.0.2.250:5354\n[backend:outside:{SERVER}]\nhost = 192.0.2.1\ncolour = red\n'
    [server] = pools.read_pool(read(text), backends.options()).servers
    assert backends.build(server).options == {'colour': 'red'}
    assert backends.options()['outside'] == (Option('colour', 'A colour.', required=True),)
    assert 'outside' in list(backends.options())


@pytest.mark.parametrize('text, said', [
    ('import no_such_library', "cannot be imported: ModuleNotFoundError: No module named 'no_such_library'"),
    ('1 / 0', 'cannot be imported: ZeroDivisionError: division by zero'),
    ('', "cannot be imported: AttributeError: module 'module_"),
    ('class Outside: pass', 'is not a subclass of designate_pool.backends.base.Backend'),
])
def test_a_driver_that_cannot_be_used_is_a_mistake_that_names_the_package(
        install: Install, read: Read, text: str, said: str) -> None:  # noqa: F811
    install('one', 'outside', text)
    with pytest.raises(BadConfiguration) as caught:
        pools.read_pool(read(f'[backend:outside:{SERVER}]\nhost = 192.0.2.1\n[backend:fake:*]\ncolour = red\n'),
                        backends.options())
    assert f"[backend:outside:{SERVER}] the driver 'outside' of the package one (module_" in str(caught.value)
    assert said in str(caught.value)
    assert '[backend:fake:*] colour' in str(caught.value)


@pytest.mark.parametrize('driver, others', [('outside', 'one, two'), ('bind9', 'designate-pool, one, two')])
def test_a_name_that_several_packages_claim_is_a_mistake_of_those_who_use_it(
        install: Install, driver: str, others: str) -> None:
    install('one', driver, MODULE)
    install('two', driver, MODULE)
    with pytest.raises(InvalidField, match=f"driver: several packages have a driver '{driver}': {others}; "):
        backends.build(Server(new_id(), driver, '192.0.2.1'))
    assert backends.driver_class('fake').__name__ == 'Fake'
