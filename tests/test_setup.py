"""setup.cfg: what is installed, and with which libraries."""

from __future__ import annotations

import ast
import configparser
import importlib.metadata
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: SQLAlchemy imports them when a URL names them.
BY_URL = {'psycopg2-binary', 'pymysql'}


def setup() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(ROOT / 'setup.cfg')
    return found


def requirements() -> dict[str, str]:
    """Version ranges by the distribution's name, of what our code needs, or can make use of."""
    extras = setup()['options.extras_require']
    parts = [setup()['options']['install_requires'],
             *(extras[name] for name in ('keystone', 'neutron', 'octodns', 'pkcs11', 'testing'))]
    lines = [line for part in parts for line in part.strip().splitlines()]
    return {re.split(r'[ <>=]', line)[0].lower().replace('_', '-'): line for line in lines}


def imported() -> set[str]:
    """The distributions of all libraries that our code imports."""
    names = set()
    for path in [*(ROOT / 'designate_pool').rglob('*.py'), *(ROOT / 'migrations').rglob('*.py')]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition('.')[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition('.')[0])
    foreign = names - set(sys.stdlib_module_names) - {'designate_pool', 'migrations'}
    owners = importlib.metadata.packages_distributions()
    return {owner.lower().replace('_', '-') for name in foreign for owner in owners.get(name, [name])}


def test_every_library_is_declared_and_every_declared_one_is_used() -> None:
    assert imported() | BY_URL == set(requirements())


def test_every_library_has_a_range_that_ends() -> None:
    for line in requirements().values():
        assert re.search(r'>=[0-9.]+,<[0-9.]+$', line), line


def test_every_package_is_listed() -> None:
    listed = set(setup()['options']['packages'].split())
    found = {'.'.join(path.parent.relative_to(ROOT).parts) for path in (ROOT / 'designate_pool').rglob('*.py')}
    found |= {'.'.join(('designate_pool', *path.parent.relative_to(ROOT).parts))
              for path in (ROOT / 'migrations').rglob('*.py')}
    assert listed == found
