"""Fixtures for all tests.  eventlet's copy of dnspython is switched off before anything imports eventlet."""

import contextlib
import errno
import functools
import importlib
import logging
import os
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import designate_pool  # noqa: F401  sets EVENTLET_NO_GREENDNS
from testing import warm

pytest_plugins = tuple(f'tests.fixtures.{name}' for name in (
    'central', 'databases', 'nameservers', 'next_release', 'servers'))

# How long an example takes says more about who else uses the machine than about the code.
settings.register_profile('shared machine', deadline=None, max_examples=50,
                          suppress_health_check=[HealthCheck.too_slow])
settings.register_profile('quick', settings.get_profile('shared machine'), max_examples=25)
# For sittings, of state machines above all: other examples each time, until a fault is found.
settings.register_profile('long', settings.get_profile('shared machine'), max_examples=10_000, print_blob=True)
settings.load_profile('shared machine')
warm.enabled = True


@pytest.fixture(autouse=True)
def root_log_level() -> Iterator[None]:
    """What a test leaves behind in the log, tests of other files would read in theirs: see ``fixtures.root_log``."""
    before = logging.getLogger().level
    yield
    after = logging.getLogger().level
    logging.getLogger().setLevel(before)
    assert after == before, f'this test left the root logger at level {after}'


@pytest.fixture
def forbid(monkeypatch: pytest.MonkeyPatch) -> Callable[[pathlib.Path], None]:
    """Has a folder refuse to be listed, which modes cannot do for root."""
    def forbid(folder: pathlib.Path) -> None:
        for name in ('listdir', 'scandir'):
            def refuse(path: Any, whole: Callable[[Any], Any] = getattr(os, name)) -> Any:
                if pathlib.Path(path) == folder:
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
                return whole(path)

            monkeypatch.setattr(os, name, refuse)

    return forbid


#: Files that take longest, longest first.  They are begun first, so that none of them is left over at the end, when
#: the other processes that run tests have nothing more to do.
SLOWEST = ('test_documentation_guide', 'test_documentation_guide_more', 'test_planted', 'test_mixed_hostile',
           'test_staged_release', 'test_signed_zones_always_valid', 'test_devstack', 'test_galera', 'test_signed_zones',
           'test_takeover_finish', 'test_documentation', 'test_rabbitmq_nodes', 'test_year', 'test_short',
           'test_mixed_outages', 'test_rolling_upgrade', 'test_documentation_servers', 'test_staged_makes',
           'test_devstack_running', 'test_mixed_commands', 'test_stop_without_broker', 'test_mixed_joining',
           'test_migration_locks', 'test_status_page', 'test_wheel', 'test_situations_outages', 'test_mixed_settings',
           'test_zone_tasks_running', 'test_backend_catalog', 'test_situations_faults', 'test_two_pools',
           'test_fed_pool', 'test_mixed_catalog', 'test_signed_zones_parent', 'test_standby', 'test_contents_audit',
           'test_rabbitmq', 'test_turns', 'test_takeover', 'test_silent_server',
           # Those of make test.
           'test_openapi', 'test_signing', 'test_signer', 'test_ixfr_servers', 'test_sessions',
           'test_migrations', 'test_target_pool', 'test_central_together', 'test_statuses', 'test_written_paths',
           'test_backend_pdns', 'test_query_plans', 'test_sink', 'test_config_check', 'test_backend_nsd',
           'test_backend_bind9', 'test_target_rfc2136', 'test_soa_poller', 'test_mixed_pool', 'test_seeing',
           'test_http_server', 'test_authorisation', 'test_target_pdns', 'test_octodns_pool', 'test_backend_transfers')


ROOT = pathlib.Path(__file__).parent
#: Folders of slow tests, and the files in them that are quick: whole pools, clusters, a year, documented commands, and
#: the tests of the torture kit, of the benchmarks and of what runs Designate's tests, which are run when these change.
SLOW_FOLDERS = tuple(ROOT / folder for folder in (
    'designate', 'functional/clusters', 'functional/docs', 'functional/history', 'functional/pool_manager',
    'functional/pools', 'torture', 'unit/benchmarks', 'unit/torture'))
QUICK_FILES = ('test_contents_matching', 'test_mixed_pool', 'test_planted', 'test_stories')


@functools.cache
def is_slow(path: pathlib.Path) -> bool:
    """Whether all tests of a file are slow, by its folder."""
    return path.stem not in QUICK_FILES and any(path.is_relative_to(folder) for folder in SLOW_FOLDERS)


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """Leave out files none of whose tests will run: to import them takes each process seconds."""
    if collection_path.suffix != '.py' or collection_path.name in ('conftest.py', '__init__.py'):
        return None
    if config.option.markexpr == 'slow':
        return not is_slow(collection_path) and 'mark.slow' not in collection_path.read_text() or None
    return config.option.markexpr == 'not slow' and is_slow(collection_path) or None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have each of several processes import another part of the files first: what it compiles, the others load."""
    if (name := os.environ.get('PYTEST_XDIST_WORKER')) is None:
        return
    places = tuple(os.path.abspath(place) for place in session.config.args)
    paths = [path for path in sorted(ROOT.rglob('test_*.py')) if str(path).startswith(places)
             and not pytest_ignore_collect(path, session.config)]
    for path in paths[int(name.removeprefix('gw'))::int(os.environ['PYTEST_XDIST_WORKER_COUNT'])]:
        # Collecting it tells of errors, and undoes what it does to the filters of warnings.
        with contextlib.suppress(Exception), warnings.catch_warnings():
            importlib.import_module('.'.join(path.relative_to(ROOT.parent).with_suffix('').parts))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow by its folder; put the slowest files first, the other ones with real servers next."""
    for item in items:
        if is_slow(item.path):
            item.add_marker('slow')

    def rank(item: pytest.Item) -> int:
        if item.path.stem in SLOWEST:
            return SLOWEST.index(item.path.stem)
        return len(SLOWEST) + ('unit' in item.path.parts)

    items.sort(key=rank)
