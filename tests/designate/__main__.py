"""``make test-designate``: all tests of designate-tempest-plugin against our API, and those of python-designateclient.

The API runs with two small name servers on SQLite, and a stand-in for Keystone.  What does not pass has to be in
``not_passing.txt`` with a reason: the command ends with 1 for a test that does not pass and is not there, and for one
that is there and passes.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from testing.processes import exit_on_sigterm
from testing.stack import Stack
from tests.fixtures import keystone
from tests.fixtures.keystone import Keystone
from tests.fixtures.nameservers import SecondaryServer
from tests.fixtures.neutron import Neutron

NOT_PASSING = pathlib.Path(__file__).with_name('not_passing.txt')
PASSED, FAILED, SKIPPED, MISSING = 'passed', 'failed', 'skipped', 'did not run'
_PACKAGE = 'designate_tempest_plugin.tests.'
_CLIENT_PACKAGE = 'designateclient.functionaltests.v2.'
_STESTR = """\
[DEFAULT]
test_path = {tests}
top_dir = {site}
group_regex = ([^\\.]*\\.)*
"""
_API = """\
auth = keystone
rate_limit = 0
enable_api_admin = true
enabled_extensions_admin = quotas, reports, zones
quotas_verify_project_id = true
"""
_TEMPEST = """\
[DEFAULT]
log_file = tempest.log
[oslo_concurrency]
lock_path = {folder}
[identity]
uri_v3 = {keystone.url}/v3
auth_version = v3
region = one
[auth]
use_dynamic_credentials = true
create_isolated_networks = false
admin_username = {admin}
admin_password = {password}
admin_project_name = {admin}
admin_domain_name = Default
[service_available]
cinder = false
glance = false
neutron = true
nova = false
swift = false
[enforce_scope]
designate = true
[dns]
nameservers = {nameservers}
build_timeout = {patience}
[dns_feature_enabled]
api_admin = true
api_v2_quotas = true
api_v2_quotas_verify_project = true
api_v2_root_recordsets = true
enforce_new_defaults = true
"""


#: What the tests of the client read; their users have projects of their names.
_CLIENT = """\
[identity]
uri = {keystone.url}/v3
username = {users[0]}
tenant_name = {users[0]}
password = {password}
alt_username = {users[1]}
alt_tenant_name = {users[1]}
alt_password = {password}
admin_username = {users[2]}
admin_tenant_name = {users[2]}
admin_password = {password}
[designateclient]
directory = {programs}
"""
_CLIENT_USERS = {'one': 'member', 'two': 'member', keystone.ADMIN: 'admin'}
_CLIENT_ENVIRONMENT = {'OS_IDENTITY_API_VERSION': '3', 'OS_USER_DOMAIN_NAME': 'Default',
                       'OS_PROJECT_DOMAIN_NAME': 'Default', 'OS_REGION_NAME': 'one'}

#: How the reason begins of a test that passes now and then.
VARIES = 'Varies: '


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog='python -m tests.designate', description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--tempest', type=pathlib.Path, default=pathlib.Path('.designate-venv'), metavar='VENV',
                        help='the virtual environment that has tempest, the plugin and the client')
    parser.add_argument('--tests', default='', metavar='REGEX', help='only those whose name has it')
    parser.add_argument('--suites', nargs='+', choices=('plugin', 'client'), default=['plugin', 'client'])
    parser.add_argument('--workers', type=int, default=4)
    parser.add_argument('--patience', type=int, default=30, help='seconds that a test waits for a zone at most')
    parser.add_argument('--minutes', type=float, default=25.0, help='for each suite; what has not run by then fails')
    parser.add_argument('--folder', type=pathlib.Path, help='where logs and results stay; else they are removed')
    given = parser.parse_args(arguments)
    exit_on_sigterm()
    with contextlib.ExitStack() as stack:
        folder = given.folder or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        outcomes = _run(stack, folder.resolve(), given.tempest.resolve() / 'bin', given)
    known = {name: why for name, why in _known() if re.search(given.tests, name)
             and ('client' if name.startswith('client.') else 'plugin') in given.suites}
    return _report(outcomes, known)


def _run(stack: contextlib.ExitStack, folder: pathlib.Path, programs: pathlib.Path,
         given: argparse.Namespace) -> dict[str, str]:
    """The outcome of each test by its name."""
    identity = Keystone()
    stack.callback(identity.stop)
    for name, role in _CLIENT_USERS.items():
        identity.add_user(name, role)
    neutron = Neutron(identity)
    stack.callback(neutron.stop)
    identity.endpoints['network'] = neutron.url
    servers = [SecondaryServer(folder / f'ns{number}') for number in (1, 2)]
    for each in servers:
        each.start()
        stack.callback(each.stop)
    # What comes first belongs to the section of the API.
    pool = Stack(folder / 'pool', [_API, identity.section(), *(
        each.section(str(uuid.uuid4()), call_timeout=2) for each in servers)], f'sqlite:///{folder}/pool.sqlite')
    identity.endpoints['dns'] = pool.url
    stack.callback(pool.stop)
    pool.start()
    site, = programs.parent.glob('lib/python*/site-packages')
    (folder / 'tempest.conf').write_text(_TEMPEST.format(
        folder=folder, keystone=identity, admin=keystone.ADMIN, password=keystone.PASSWORD, patience=given.patience,
        nameservers=','.join(f'{each.host}:{each.port}' for each in servers)))
    (folder / 'client.conf').write_text(_CLIENT.format(
        keystone=identity, users=tuple(_CLIENT_USERS), password=keystone.PASSWORD, programs=programs))
    outcomes = {}
    for name, tests, pattern, environment in (
            ('plugin', site / 'tempest' / 'test_discover', f'{re.escape(_PACKAGE)}(api|scenario).*{given.tests}',
             {'TEMPEST_CONFIG_DIR': str(folder)}),
            ('client', site / 'designateclient' / 'functionaltests', f'{re.escape(_CLIENT_PACKAGE)}.*{given.tests}',
             {'TEMPEST_CONFIG': str(folder / 'client.conf'), **_CLIENT_ENVIRONMENT})):
        if name in given.suites:
            suite = _Suite(folder / name, programs, environment)
            suite.configure(tests, site)
            outcomes.update(suite.run(pattern, given.workers, time.monotonic() + given.minutes * 60))
    return outcomes


class _Suite:
    """Tests that stestr runs in *folder*."""

    def __init__(self, folder: pathlib.Path, programs: pathlib.Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._programs = programs
        self._environment = {**os.environ, **environment, 'PATH': f'{programs}:{os.environ["PATH"]}'}

    def configure(self, tests: pathlib.Path, site: pathlib.Path) -> None:
        self._folder.mkdir(exist_ok=True)
        (self._folder / '.stestr.conf').write_text(_STESTR.format(tests=tests, site=site))
        self._call('stestr', 'init', check=True)

    def run(self, pattern: str, workers: int, until: float) -> dict[str, str]:
        """The outcome of each test whose name has *pattern*, by its short name."""
        listed = self._call('stestr', 'list', pattern, stdout=subprocess.PIPE, check=True).stdout.decode().split()
        if not listed:
            return {}
        begun = time.monotonic()
        results = self._folder / 'results.subunit'
        # As they come: stestr itself has the results of no test when it is ended before the last one.
        with results.open('wb') as into, subprocess.Popen(
                [self._programs / 'stestr', 'run', '--subunit', '--concurrency', str(workers), pattern], stdout=into,
                cwd=self._folder, env=self._environment, start_new_session=True) as running:
            try:
                running.wait(max(1.0, until - begun))
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
            except BaseException:
                os.killpg(running.pid, signal.SIGKILL)
                raise
        print(f'{self._folder.name}: {len(listed)} tests in {time.monotonic() - begun:.0f} s', flush=True)
        # It ends with 1 where a test has failed.
        table = self._call('subunit2csv', '--no-passthrough', input=results.read_bytes(), stdout=subprocess.PIPE).stdout
        return _outcomes(map(_short, listed), table.decode())

    def _call(self, program: str, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([self._programs / program, *words], cwd=self._folder, env=self._environment, **options)


def _short(name: str) -> str:
    """The name of a test without what all have in common, and without its id."""
    plain = name.partition('[')[0]
    return 'client.' + plain.removeprefix(_CLIENT_PACKAGE) if plain.startswith(_CLIENT_PACKAGE) else (
        plain.removeprefix(_PACKAGE))


def _outcomes(listed: Iterable[str], table: str) -> dict[str, str]:
    """The outcome of each test that was listed; that of its class if it has none."""
    words = {'success': PASSED, 'skip': SKIPPED}
    found = {each['test']: words.get(each['status'], FAILED) for each in csv.DictReader(table.splitlines())}
    classes = {_short(name.partition('(')[2].rstrip(')')): outcome for name, outcome in found.items() if '(' in name}
    tests = {_short(name): outcome for name, outcome in found.items()}
    return {name: tests.get(name) or classes.get(name.rpartition('.')[0], MISSING) for name in listed}


def _known() -> Iterator[tuple[str, str]]:
    """The tests that are not expected to pass, each with the reason: the unindented line above it."""
    why = ''
    for line in NOT_PASSING.read_text().splitlines():
        if line.startswith(' '):
            yield line.strip(), why
        elif line:
            why = line


def _report(outcomes: Mapping[str, str], known: Mapping[str, str]) -> int:
    """Print what came out; 1 when it is not what is known, or nothing."""
    print(', '.join(f'{count} {outcome}' for outcome, count in sorted(Counter(outcomes.values()).items()))
          or 'No test was selected.')
    unknown = {name: outcome for name, outcome in outcomes.items() if outcome != PASSED and name not in known}
    mended = [name for name, why in known.items() if outcomes.get(name) == PASSED and not why.startswith(VARIES)]
    gone = [name for name in known if name not in outcomes]
    told = [f'{name}: {outcome}' for name, outcome in sorted(unknown.items())]
    for title, names in (('These do not pass, and are not expected to fail', told),
                         ('These pass, and are expected to fail', mended), ('There are no such tests', gone)):
        if names:
            print(f'{title}:', *names, sep='\n  ')
    return int(bool(unknown or mended or gone or not outcomes))


if __name__ == '__main__':
    sys.exit(main())
