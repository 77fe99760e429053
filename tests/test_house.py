"""The house rules: who may import whom, where a library is kept, how long a file may be."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Past 400 lines a file had better be one thing; past this many it is not.
LONGEST = 700

VALUES = {'errors', 'serial', 'model'}
#: What speaks to servers from more than one room: the time left for it, and PowerDNS's API.
TOOLS = {'deadline', 'powerdns'}
#: What is seen of the programs: what they count, and the form of a line of the log.
SEEN = {'metrics', 'logs'}
EDGES = {'config', 'rpc', 'storage', 'backends'}
SERVICES = {'central', 'pool_manager', 'minidns', 'api'}

#: Files that decide with values: they import values and each other.
PURE = {
    'api.explaining', 'api.judging', 'api.propagation', 'central.status', 'central.zonetext', 'pool_manager.consensus',
    'pool_manager.due', 'minidns.access', 'minidns.packing', 'minidns.responder', 'minidns.signing', 'minidns.transfer',
    'minidns.window', 'minidns.wire', 'planner.records', 'planner.zone', 'planner.changes', 'planner.plan',
    'planner.policy', 'planner.safety', 'planner.outcome', 'planner.keeping', 'planner.master', 'planner.master_lines',
    'planner.file_mistakes',
    'planner.processors.checks', 'planner.processors.conflicts', 'planner.processors.registries',
    'planner.targets.pdns_text', 'planner.targets.standing', 'planner.targets.update_messages', 'webhook.endpoints',
    'zonemd',
}

#: The rooms from which each room may import, besides itself.  ``cmd`` is not here: it may see everything.
MAY_IMPORT: dict[str, set[str]] = {
    **{room: set() for room in VALUES},
    **{room: VALUES for room in EDGES},
    **{room: VALUES | SEEN | {'rpc', 'storage'} for room in SERVICES},
    **{room: VALUES | SEEN for room in ('rpc', 'storage')},
    **{room: set() for room in SEEN},
    'backends': VALUES | TOOLS | {'planner'},
    'pool_manager': VALUES | TOOLS | SEEN | {'rpc', 'storage', 'backends', 'planner'},
    'deadline': set(),
    'zonemd': set(),
    'powerdns': VALUES | TOOLS,
    'runtime': VALUES,
    'nameserver': VALUES,
    'planner': VALUES | TOOLS,
    'cli': VALUES | {'planner'},
    'webhook': VALUES | {'planner', 'metrics'},
    'octodns_provider': VALUES | {'planner'},
    'migrations': VALUES | {'storage'},
}

#: Libraries that only these rooms know.
KEPT = {
    'eventlet': {'runtime'},
    'oslo_messaging': {'rpc'},
    'sqlalchemy': {'storage', 'migrations'},
    'alembic': {'storage', 'migrations'},
    'oslo_config': {'config', 'cmd'},
    'falcon': {'api', 'webhook'},
    'waitress': {'api', 'webhook'},
    'jsonschema_rs': {'api'},
    'cliff': {'cli', 'cmd'},
    'prometheus_client': {'metrics', 'cmd'},
    'requests': {'backends', 'cli', 'cmd', 'planner'},
    'yaml': {'cli', 'config', 'planner'},
    'octodns': {'planner', 'octodns_provider'},
    'oslo_policy': {'api', 'cmd'},
    'keystonemiddleware': {'api'},
    'keystoneauth1': {'api'},
    'asyncio': set(),
}

#: What a pure file has no business with: clocks, chance, logs, sockets, threads, files.
IMPURE = {
    'asyncio', 'concurrent', 'io', 'logging', 'os', 'pathlib', 'queue', 'random', 'secrets', 'select', 'selectors',
    'signal', 'socket', 'socketserver', 'ssl', 'subprocess', 'tempfile', 'threading', 'time', 'urllib',
    'dns.asyncquery', 'dns.asyncresolver', 'dns.query', 'dns.resolver',
}
CLOCKS = {'now', 'utcnow', 'today'}


def trespasses(module: str, source: str) -> list[str]:
    """What *source*, as the contents of ``designate_pool.<module>`` or ``migrations.<...>``, does against the rules."""
    room = module.partition('.')[0]
    tree = ast.parse(source)
    found = []
    for line, name in _imports(tree):
        library = name.partition('.')[0]
        if name.startswith('.'):
            found.append(f'{module}:{line} imports relatively')
        elif library in ('designate_pool', 'migrations'):
            found.extend(_against_rooms(module, room, line, name))
        elif library in ('tests', 'benchmarks'):
            found.append(f'{module}:{line} imports {name}')
        elif room not in KEPT.get(library, {room}):
            found.append(f'{module}:{line} imports {library}, which is kept in {" and ".join(sorted(KEPT[library]))}')
        if module in PURE and any(name == each or name.startswith(each + '.') for each in IMPURE):
            found.append(f'{module}:{line} is pure and imports {name}')
    if module in PURE:
        found.extend(f'{module}:{line} is pure and asks a clock' for line in _clocks(tree))
    if source.count('\n') > LONGEST:
        found.append(f'{module} has more than {LONGEST} lines')
    return found


def _against_rooms(module: str, room: str, line: int, name: str) -> Iterator[str]:
    """*name* is ``designate_pool.<room>.<file>.<thing>`` with as many parts as were written."""
    target = name.removeprefix('designate_pool').removeprefix('.') if not name.startswith('migrations') else name
    other = target.partition('.')[0]
    pure = any(target == each or target.startswith(each + '.') for each in PURE)
    if module in PURE:
        if other not in VALUES and not pure:
            yield f'{module}:{line} is pure and imports {name}'
    elif room == 'cmd' or other in ('', '__version__', room) or pure and room in SERVICES | {'nameserver', 'planner'}:
        return
    elif other not in MAY_IMPORT.get(room, set()):
        yield f'{module}:{line} imports {name}'


def _imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every import, wherever it stands, as the full name of each thing imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.lineno, f'{"." * node.level}{node.module or ""}.{alias.name}'


def _clocks(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS:
            yield node.lineno
        elif isinstance(node, ast.ImportFrom) and any(alias.name in CLOCKS for alias in node.names):
            yield node.lineno


def files() -> dict[str, pathlib.Path]:
    """Our modules by name, ``designate_pool.`` left out."""
    found = {}
    for folder, prefix in ((ROOT / 'designate_pool', ()), (ROOT / 'migrations', ('migrations',))):
        for path in sorted(folder.rglob('*.py')):
            parts = prefix + path.relative_to(folder).with_suffix('').parts
            found['.'.join(parts).removesuffix('.__init__')] = path
    return found


def test_every_file_keeps_the_rules() -> None:
    found = files()
    assert len(found) > 20 and 'model' in found
    assert [each for module, path in found.items() for each in trespasses(module, path.read_text())] == []


def test_every_pure_file_is_there() -> None:
    assert PURE <= files().keys()


def test_every_room_has_a_rule() -> None:
    rooms = {module.partition('.')[0] for module in files()} - {'__init__', 'cmd'}
    assert rooms <= MAY_IMPORT.keys()


@pytest.mark.parametrize(('module', 'source'), [
    ('model', 'from designate_pool.errors import PoolError'),
    ('serial', 'import designate_pool.model'),
    ('storage.domains', 'from designate_pool.rpc import central'),
    ('storage.domains', 'from designate_pool import rpc'),
    ('config.pools', 'from designate_pool.backends import options'),
    ('rpc.central', 'def f():\n    import designate_pool.storage.sql.schema'),
    ('backends.bind9', 'import typing\nif typing.TYPE_CHECKING:\n    from designate_pool.config import load'),
    ('backends.secondary', 'from designate_pool.nameserver import server'),
    ('central.service', 'from designate_pool.backends.base import Backend'),
    ('central.service', 'from designate_pool.pool_manager.manager import Manager'),
    ('minidns.service', 'from designate_pool.runtime import Threads'),
    ('pool_manager.manager', 'from designate_pool.config.load import Settings'),
    ('cli.zone', 'from designate_pool.storage import migrate'),
    ('nameserver.server', 'from designate_pool.minidns.server.listener import Server'),
    ('minidns.server', 'import eventlet.green.socket'),
    ('central.service', 'import oslo_messaging'),
    ('pool_manager.manager', 'from sqlalchemy import select'),
    ('migrations.env', 'from designate_pool.central import service'),
    ('storage.sessions', 'from oslo_config import cfg'),
    ('cmd.all', 'import sqlalchemy'),
    ('minidns.poller', 'import asyncio'),
    ('central.rules', 'from .service import Central'),
    ('api.app', 'from tests.fixtures import processes'),
    ('pool_manager.consensus', 'import logging'),
    ('pool_manager.due', 'from time import monotonic'),
    ('pool_manager.due', 'from designate_pool.storage import statuses'),
    ('pool_manager.due', 'from designate_pool.pool_manager import manager'),
    ('central.status', 'from datetime import datetime\nnow = datetime.now()'),
    ('central.status', 'from designate_pool.model import utcnow'),
    ('minidns.responder', 'import dns.query'),
    ('minidns.transfer', 'import os.path'),
    ('storage.long', 'x = 1\n' * (LONGEST + 1)),
    ('attic.old', 'from designate_pool.model import Pool'),
])
def test_a_trespass_is_seen(module: str, source: str) -> None:
    assert trespasses(module, source)


@pytest.mark.parametrize(('module', 'source'), [
    ('storage.domains', 'import sqlalchemy as sa\nfrom designate_pool.model import Domain'),
    ('storage.domains', 'from designate_pool.storage import schema'),
    ('pool_manager.manager', 'from designate_pool.backends.base import Backend\nimport logging, time'),
    ('pool_manager.due', 'from designate_pool.pool_manager.consensus import verdict\nfrom datetime import timedelta'),
    ('minidns.service', 'from designate_pool.minidns.server.responder import reply\nfrom designate_pool import errors'),
    ('nameserver.server', 'from designate_pool.minidns.zones.packing import pack'),
    ('minidns.packing', 'import dns.message\nfrom designate_pool.serial import newer'),
    ('cmd.all', 'from designate_pool.central.service import Central\nfrom designate_pool import __version__, runtime'),
    ('migrations.env', 'from alembic import context\nfrom designate_pool.storage.sql.schema import metadata'),
    ('storage.short', 'x = 1\n' * LONGEST),
])
def test_what_is_allowed_is_no_trespass(module: str, source: str) -> None:
    assert trespasses(module, source) == []
