"""The house rules: who may import whom, where a library is kept, how long a file may be."""

from __future__ import annotations

import ast
import collections
import functools
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping

import pytest

from tests import conftest
from tests.fixtures import contributor_pages

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Each file is read by many rules.
parsed = functools.cache(ast.parse)
#: Past 400 lines a file had better be one thing; past this many it is not.
LONGEST = 700

#: A package with more modules than this had better be two.
MOST_MODULES = 15

VALUES = {'errors', 'serial', 'model', 'settings'}
#: DNS as it is on the wire and as text, what servers agree on, what is asked of a runtime, calls that are combined,
#: logs, and when to try again: for every room but the values.
SHARED = {'protocol', 'concurrency', 'call_combiner', 'consensus', 'logs', 'backoff'}
#: What speaks to servers from more than one room: the time left for it, and PowerDNS's API.
TOOLS = {'deadline', 'powerdns'}
#: What is seen of the programs: what they count.
SEEN = {'metrics'}
EDGES = {'config', 'rpc', 'storage', 'backends'}
SERVICES = {'central', 'pool_manager', 'minidns', 'api', 'sink'}

#: What of :mod:`designate_pool.protocol` needs the system: sockets, chance.
WITH_SYSTEM = {'protocol.axfr_inbound', 'protocol.soa_exchange', 'protocol.soa_query', 'protocol.tcp_client',
               'protocol.tls'}
#: Files that decide with values: they import values, the protocol, and each other inside their room.  So does all of
#: ``signing``, and of ``protocol`` but what is in WITH_SYSTEM.
PURE = {
    'api.schema.answers', 'api.services.wait_verdict', 'api.views.explain', 'api.views.zone_servers',
    'central.rules.status', 'minidns.acl', 'minidns.server.responder', 'minidns.zones.packed_zone',
    'planner.master', 'planner.plan.plan', 'planner.plan.policy', 'planner.plan.safety', 'planner.plan.stored_plan',
    'planner.run_report', 'planner.zone.changes', 'planner.zone.zone',
    'backoff', 'consensus', 'pool_manager.reconcile.row_transitions',
}

#: The rooms from which each room may import, besides itself.  ``cmd`` is not here: it may see everything.
MAY_IMPORT: dict[str, set[str]] = {
    **{room: set() for room in VALUES | SEEN | {'deadline', 'logs', 'backoff'}},
    **{room: {'errors'} for room in ('call_combiner', 'concurrency')},
    **{room: VALUES | SHARED for room in EDGES},
    **{room: VALUES | SHARED | SEEN | {'rpc', 'storage'} for room in SERVICES},
    'rpc': VALUES | SHARED | SEEN,
    'storage': VALUES | SHARED | SEEN | {'deadline'},
    'api': VALUES | SHARED | SEEN | {'rpc', 'storage', 'central'},
    'central': VALUES | SHARED | SEEN | {'rpc', 'storage', 'deadline', 'signing'},
    'minidns': VALUES | SHARED | SEEN | {'rpc', 'storage', 'deadline'},
    'settings': {'model'},
    'protocol': VALUES | {'deadline', 'backoff'},
    'signing': VALUES | {'protocol'},
    'consensus': VALUES,
    'backends': VALUES | SHARED | TOOLS | {'planner'},
    'pool_manager': VALUES | SHARED | TOOLS | SEEN | {'rpc', 'storage', 'backends', 'planner', 'signing'},
    'powerdns': VALUES | TOOLS | {'backoff', 'protocol'},
    'runtime': VALUES | {'concurrency'},
    'nameserver': VALUES | SHARED | {'deadline'},
    'planner': VALUES | SHARED | TOOLS,
    'cli': VALUES | SHARED | {'planner'},
    'webhook': VALUES | SHARED | {'planner', 'metrics'},
    'wsgi': {'runtime', 'cmd'},
    'octodns_provider': VALUES | SHARED | {'planner'},
    'migrations': VALUES | {'storage'},
    'testing': VALUES | {'backends', 'backoff'},
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
    'jsonschema_rs': {'api', 'central'},
    'cliff': {'cli', 'cmd'},
    'prometheus_client': {'metrics', 'cmd'},
    'requests': {'backends', 'cli', 'cmd', 'planner'},
    'yaml': {'cli', 'cmd', 'config', 'planner'},
    'octodns': {'planner', 'octodns_provider'},
    'oslo_policy': {'api', 'cmd'},
    'keystonemiddleware': {'api'},
    'keystoneauth1': {'api'},
    'openstack': {'api'},
    'asyncio': set(),
    'pytest': {'testing'},
}

#: What a pure file has no business with: clocks, chance, logs, sockets, threads, files.
IMPURE = {
    'asyncio', 'concurrent', 'io', 'logging', 'os', 'pathlib', 'queue', 'random', 'secrets', 'select', 'selectors',
    'signal', 'socket', 'socketserver', 'ssl', 'subprocess', 'tempfile', 'threading', 'time', 'urllib',
    'dns.asyncquery', 'dns.asyncresolver', 'dns.query', 'dns.resolver',
}
#: Functions of these modules that are pure: of addresses as text and octets, which take Python many times as long.
CONVERSIONS = {f'socket.{name}' for name in ('AF_INET6', 'inet_aton', 'inet_ntop', 'inet_pton')}
CLOCKS = {'now', 'utcnow', 'today'}

#: Names of variables that do not say what is held.
SAYING_NOTHING = {'found', 'each', 'some', 'given', 'wanted', 'known', 'there', 'held', 'told', 'left'}

#: Classes of libraries whose documentation says that they are to be subclassed.
DOCUMENTED_BASES = {
    'cliff.app.App', 'cliff.command.Command', 'cliff.display.DisplayCommandBase',
    'cliff.formatters.base.SingleFormatter', 'cliff.help.HelpCommand', 'cliff.lister.Lister', 'cliff.show.ShowOne',
    'keystonemiddleware.auth_token.AuthProtocol', 'octodns.provider.base.BaseProvider',
    'oslo_config.iniparser.BaseParser', 'oslo_messaging.Serializer', 'oslo_messaging.rpc.dispatcher.RPCDispatcher',
    'sqlalchemy.String', 'sqlalchemy.String.Comparator', 'sqlalchemy.types.TypeDecorator',
}
#: Names with an underscore that libraries document: of named tuples, of SQLAlchemy's rows, of :mod:`os`, of octoDNS.
DOCUMENTED_NAMES = {'_asdict', '_exit', '_fields', '_mapping', '_process_desired_zone', '_process_existing_zone',
                    '_replace', '_t', '_type'}
#: What is used of other libraries though they do not document it, and why.
UNDOCUMENTED = {
    'cli.base: _formatter_plugins': 'cliff lists the formats that are installed nowhere else',
    'cli.base: _load_formatter_plugins': 'cliff takes formats of an application only as installed plug-ins of all',
    'cli.base: cliff.formatters.commaseparated.CSVLister': 'a format of one thing as CSV, as lists have it',
    'cli.base: cliff.formatters.table.TableFormatter': 'a table with states in colour',
    'rpc.broker: _executor_cls': 'the executor of oslo.messaging wakes each of its threads once a second',
    'rpc.broker: _reply_q': 'a first call while the broker is down would wait for ever, with all other calls',
    'rpc.broker: _get_reply_q': 'see _reply_q',
    'rpc.broker: _connection_pool': 'see _reply_q',
    'rpc.broker: _transport_socket_timeout': 'each message would set the timeout of the connection anew',
    'rpc.broker: kombu.transport.pyamqp.Transport': 'an error does not tell which broker could not be reached',
    'rpc.broker: oslo_messaging._drivers.amqpdriver': 'how often it looks for acknowledgements is not an option',
    'rpc.broker: oslo_messaging._drivers.common': 'see _reply_q',
    'rpc.broker: oslo_messaging._drivers.impl_rabbit': 'its classes are chosen by no option',
    'rpc.broker: oslo_messaging._drivers.impl_rabbit.Connection': 'it prepares for a lost connection each time',
    'rpc.broker: oslo_messaging._drivers.impl_rabbit.Consumer': 'consumers have no priority otherwise',
    'rpc.broker: oslo_messaging._drivers.impl_rabbit.RabbitDriver': 'see _reply_q',
}


def undocumented(sources: Mapping[str, str]) -> set[str]:
    """What the modules of *sources* use of other libraries: private names, and subclasses."""
    trees = {module: parsed(source) for module, source in sources.items()}
    ours = {name for tree in trees.values() for name in _own_names(tree)}
    found: set[str] = set()
    for module, tree in trees.items():
        documented = {f'{module}: {name}' for name in DOCUMENTED_NAMES}
        names = _names_of_libraries(tree)
        found |= {f'{module}: {whole}' for whole in names.values() if re.search(r'(^|\.)_[a-z]', whole)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and re.match('_[a-z]', node.attr) and node.attr not in DOCUMENTED_NAMES:
                if node.attr not in ours:
                    found.add(f'{module}: {node.attr}')
            elif isinstance(node, ast.ClassDef):
                for base in node.bases:
                    name, dot, rest = ast.unparse(base).partition('[')[0].partition('.')
                    if name in names and (whole := f'{names[name]}{dot}{rest}') not in DOCUMENTED_BASES:
                        found.add(f'{module}: {whole}')
                    if name in names:
                        found |= {f'{module}: {name}' for name in re.findall(r'\bsuper\(\)\.(_[a-z]\w*)',
                                                                             ast.unparse(node))} - documented
    return found


def _names_of_libraries(tree: ast.AST) -> dict[str, str]:
    """The names by which a module knows what it imports from neither us nor Python, each with the whole name."""
    names = {alias.asname or alias.name.partition('.')[0]: alias.name for node in ast.walk(tree)
             if isinstance(node, ast.Import) for alias in node.names}
    names |= {alias.asname or alias.name: f'{node.module}.{alias.name}' for node in ast.walk(tree)
              if isinstance(node, ast.ImportFrom) for alias in node.names}
    return {name: whole for name, whole in names.items()
            if whole.partition('.')[0] not in {'designate_pool', 'migrations', *sys.stdlib_module_names}}


def _own_names(tree: ast.AST) -> Iterator[str]:
    """Names of methods and attributes that the classes of a module define themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield member.name
                elif isinstance(member, ast.AnnAssign):
                    yield ast.unparse(member.target)
                elif isinstance(member, ast.Assign):
                    yield from (word.value for word in ast.walk(member.value) if isinstance(word, ast.Constant)
                                and isinstance(word.value, str))  # of __slots__
                    yield from map(ast.unparse, member.targets)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) \
                and isinstance(node.value, ast.Name) and node.value.id in ('self', 'cls'):
            yield node.attr
        elif isinstance(node, ast.FunctionDef):
            yield node.name if node.col_offset == 0 else ''


def trespasses(module: str, source: str) -> list[str]:
    """What *source*, as the contents of ``designate_pool.<module>`` or ``migrations.<...>``, does against the rules."""
    room = module.partition('.')[0]
    tree = parsed(source)
    found = []
    for line, name in _imports(tree):
        library = name.partition('.')[0]
        if name.startswith('.'):
            found.append(f'{module}:{line} imports relatively')
        elif library in ('designate_pool', 'migrations'):
            found.extend(_against_rooms(module, room, line, name))
        elif library in ('testing', 'tests', 'benchmarks'):
            found.append(f'{module}:{line} imports {name}')
        elif room not in KEPT.get(library, {room}):
            found.append(f'{module}:{line} imports {library}, which is kept in {" and ".join(sorted(KEPT[library]))}')
        if is_pure(module) and name not in CONVERSIONS and any(
                name == each or name.startswith(each + '.') for each in IMPURE):
            found.append(f'{module}:{line} is pure and imports {name}')
    if is_pure(module):
        found.extend(f'{module}:{line} is pure and asks a clock' for line in _clocks(tree))
    if source.count('\n') > LONGEST:
        found.append(f'{module} has more than {LONGEST} lines')
    return found


def is_pure(module: str) -> bool:
    return module in PURE or module.startswith(('protocol.', 'signing.')) and module not in WITH_SYSTEM


def _against_rooms(module: str, room: str, line: int, name: str) -> Iterator[str]:
    """*name* is ``designate_pool.<room>.<file>.<thing>`` with as many parts as were written."""
    target = name.removeprefix('designate_pool').removeprefix('.') if not name.startswith('migrations') else name
    other = target.partition('.')[0]
    if is_pure(module):
        inside = other == room and (room == 'signing' or any(
            target == each or target.startswith(each + '.') for each in PURE))
        with_system = any(target == each or target.startswith(each + '.') for each in WITH_SYSTEM)
        if other not in VALUES | {'backoff', 'consensus'} and not inside and (other != 'protocol' or with_system):
            yield f'{module}:{line} is pure and imports {name}'
    elif room != 'cmd' and other not in MAY_IMPORT.get(room, set()) | {'', '__version__', room}:
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


def cycles(sources: Mapping[str, str]) -> list[list[str]]:
    """Groups of modules that import each other, in either direction and however far around."""
    imported = {module: {near for _, name in _imports(parsed(source)) if (near := _module(name, sources)) != module}
                for module, source in sources.items()}
    reached = {module: _reached(module, imported) for module in sources}
    return sorted({tuple(sorted(other for other in sources if other in reached[module] and module in reached[other]))
                   for module in sources if module in reached[module]})  # type: ignore[return-value]


def _module(name: str, modules: Mapping[str, str]) -> str | None:
    """Which of *modules* the name of an imported thing leads to."""
    found = name.removeprefix('designate_pool.')
    while found and found not in modules:
        found = found.rpartition('.')[0]
    return found or None


def _reached(module: str, imported: Mapping[str, set[str | None]]) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        for each in imported[waiting.pop()]:
            if each and each not in found:
                found.add(each)
                waiting.append(each)
    return found


def classes(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """The public classes by name, each with the modules that have one."""
    found: dict[str, list[str]] = {}
    for module, source in sources.items():
        for node in parsed(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
                found.setdefault(node.name, []).append(module)
    return found


def vague_variables(source: str) -> Iterator[tuple[int, str]]:
    """The variables of functions in *source* whose names are in :data:`SAYING_NOTHING`, with their lines."""
    for function in ast.walk(parsed(source)):
        if isinstance(function, ast.FunctionDef):
            parameters = {argument.arg for node in ast.walk(function.args) if isinstance(argument := node, ast.arg)}
            for name in ast.walk(function):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) \
                        and name.id in SAYING_NOTHING - parameters:
                    yield name.lineno, name.id


def test_no_modules_import_each_other() -> None:
    assert cycles({module: path.read_text() for module, path in files().items()}) == []
    assert cycles({'a': 'from designate_pool.b import x',
                   'b': 'import designate_pool.c', 'c': 'from designate_pool import a',
                   'd': 'import designate_pool.a'}) == [('a', 'b', 'c')]


def test_the_packages_of_the_pool_manager_are_layers() -> None:
    packages = collections.defaultdict[str, str](str)
    for module, path in files().items():
        if module.startswith('pool_manager.'):
            packages['.'.join(module.split('.')[:2])] += path.read_text()
    assert len(packages) > 5 and cycles(packages) == []


def test_a_name_is_one_class() -> None:
    found = classes({module: path.read_text() for module, path in files().items()})
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}


def test_libraries_are_used_as_they_are_documented() -> None:
    assert undocumented({module: path.read_text() for module, path in files().items()}) == UNDOCUMENTED.keys()


def test_no_package_is_crowded() -> None:
    packages = collections.Counter(module.rpartition('.')[0] for module, path in files().items()
                                   if path.name != '__init__.py' and not module.startswith('migrations'))
    assert {package: count for package, count in packages.items() if count > MOST_MODULES} == {}


def test_every_file_keeps_the_rules() -> None:
    found = files()
    assert len(found) > 20 and 'model' in found
    assert [each for module, path in found.items() for each in trespasses(module, path.read_text())] == []


def test_what_tests_and_benchmarks_share_knows_nothing_of_tests() -> None:
    found = [(path.name, name) for folder in ('testing', 'benchmarks') for path in sorted((ROOT / folder).glob('*.py'))
             for _, name in _imports(parsed(path.read_text()))]
    assert ('system.py', 'testing.stack.Stack') in found
    assert [each for each in found if each[1].partition('.')[0] in ('tests', 'pytest')] == []


def test_variables_say_what_they_hold() -> None:
    assert [f'{module}:{line} {name}' for module, path in files().items()
            for line, name in vague_variables(path.read_text())] == []
    assert list(vague_variables('def f(found):\n    each = found\n    found = 1\n')) == [(2, 'each')]


def test_docstrings_begin_with_a_summary() -> None:
    assert [f'{module}:{node.lineno}' for module, path in files().items()
            for node in ast.walk(parsed(path.read_text()))
            if isinstance(node, ast.FunctionDef) and not node.name.startswith('_')
            and (ast.get_docstring(node) or '').startswith(':')] == []


def test_every_pure_file_is_there() -> None:
    assert PURE <= files().keys()


def test_every_room_has_a_rule() -> None:
    rooms = {module.partition('.')[0] for module in files()} - {'__init__', 'cmd'}
    assert rooms <= MAY_IMPORT.keys()


@pytest.mark.parametrize(('module', 'source'), [
    ('model', 'from designate_pool.errors import PoolError'),
    ('serial', 'import designate_pool.model'),
    ('storage.zones.domains', 'from designate_pool.rpc import central'),
    ('rpc.central', 'def f():\n    import designate_pool.storage.sql.schema'),
    ('backends.bind9.driver', 'import typing\nif typing.TYPE_CHECKING:\n    from designate_pool.config import load'),
    ('central.service', 'from designate_pool.backends.base import Backend'),
    ('minidns.server.listener', 'import eventlet.green.socket'),
    ('central.service', 'import oslo_messaging'),
    ('central.events', 'from .service import Central'),
    ('api.app', 'from tests.fixtures import processes'),
    ('consensus', 'import logging'),
    ('pool_manager.reconcile.row_transitions', 'from time import monotonic'),
    ('pool_manager.reconcile.row_transitions', 'from designate_pool.storage.operations import server_statuses'),
    ('central.rules.status', 'from datetime import datetime\nnow = datetime.now()'),
    ('central.rules.status', 'from designate_pool.model import utcnow'),
    ('protocol.soa_rdata', 'import os.path'),
    ('signing.signer', 'from time import time'),
    ('signing.signer', 'import designate_pool.storage.sql.schema'),
    ('protocol.wire', 'from designate_pool.protocol.tcp_client import connect'),
    ('storage.long', 'x = 1\n' * (LONGEST + 1)),
    ('attic.old', 'from designate_pool.model import Pool'),
])
def test_a_trespass_is_seen(module: str, source: str) -> None:
    assert trespasses(module, source)


@pytest.mark.parametrize(('module', 'source'), [
    ('storage.zones.domains', 'import sqlalchemy as sa\nfrom designate_pool.model import Domain'),
    ('pool_manager.reconcile.row_transitions', 'from designate_pool.consensus import verdict\n'
     'from datetime import timedelta'),
    ('cmd.all', 'from designate_pool.central.service import Central\nfrom designate_pool import __version__, runtime'),
    ('migrations.env', 'from alembic import context\nfrom designate_pool.storage.sql.schema import metadata'),
    ('storage.short', 'x = 1\n' * LONGEST),
])
def test_what_is_allowed_is_no_trespass(module: str, source: str) -> None:
    assert trespasses(module, source) == []


def test_every_package_says_what_it_is_for() -> None:
    said = {module: ast.get_docstring(parsed(path.read_text())) or '' for module, path in files().items()
            if path.name == '__init__.py'}
    assert len(said) > 20
    assert [module for module, docstring in said.items() if not docstring.strip()] == []


@pytest.mark.parametrize('page', sorted(contributor_pages.PAGES.glob('*.rst')), ids=lambda page: page.name)
def test_what_the_pages_for_contributors_name_is_there(page: pathlib.Path) -> None:
    assert [name for name in contributor_pages.names(page) if contributor_pages.resolve(name) is None] == []


def test_the_page_on_testing_names_the_fixtures_that_there_are() -> None:
    _, _, page = (contributor_pages.PAGES / 'testing.rst').read_text().partition('Fixtures\n---')
    for_all, _, others = page.partition('Others are in')
    modules = [ROOT / f'{plugin.replace(".", "/")}.py' for plugin in conftest.pytest_plugins]
    assert set(re.findall(r'``([a-z]\w+)``', for_all)) == set().union(*map(contributor_pages.fixtures, modules))
    told = re.findall(r'``(\w+)``(?: and ``(\w+)``)?\s+in\s+``([\w/]+)``', others)
    assert len(told) > 5
    for *names, folder in told:
        assert set(filter(None, names)) <= contributor_pages.fixtures(ROOT / folder / 'conftest.py'), folder
