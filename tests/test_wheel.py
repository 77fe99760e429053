"""What a user installs: a wheel that is complete without the checkout."""

from __future__ import annotations

import configparser
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv

import pytest

from tests.fixtures import documentation

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMPORT_ALL = '''
import importlib, pkgutil, sys
import designate_pool
for found in pkgutil.walk_packages(designate_pool.__path__, 'designate_pool.'):
    # What lies in migrations is run by alembic and cannot be imported by anyone else; the upgrade below runs it.
    # Importing a __main__ or the WSGI application is running the program.
    if not found.name.startswith('designate_pool.migrations'):
        if not found.name.endswith(('.__main__', '.wsgi')):
            importlib.import_module(found.name)
        print(found.name)
print(designate_pool.__file__, file=sys.stderr)
'''


class Installed:
    """A virtual environment with the wheel in it, used from a folder outside the checkout."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.venv = folder / 'venv'
        self.folder = folder / 'elsewhere'
        self.folder.mkdir()
        venv.create(self.venv, with_pip=False, system_site_packages=False)
        pip('--python', self.venv / 'bin' / 'python', 'install', '--no-deps', '--no-index', build_wheel(folder))
        # The dependencies are the ones that the tests run with, to save downloading them again.  A path in a .pth file
        # is only appended to sys.path: the .pth files over there, the checkout's own among them, have no effect here.
        site = pathlib.Path(sysconfig.get_path('purelib', vars={'base': str(self.venv)}))
        (site / 'dependencies.pth').write_text(sysconfig.get_path('purelib') + '\n')

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.venv / 'bin' / program, *arguments], cwd=self.folder, env=self.environment(),
                              timeout=120, capture_output=True, text=True)

    def environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith(('PYTHON', 'PYTEST_'))}


class Shell:
    """A shell in a folder, with the programs of an environment, whose pip asks no index.

    It takes the place of :class:`tests.fixtures.documentation.Shell`, which has the checkout's programs.
    """

    def __init__(self, installed: Installed, folder: pathlib.Path) -> None:
        self._folder = folder
        # PIP_NO_BUILD_ISOLATION is read the other way round: 0 is "no isolation".
        self._environment = installed.environment() | {
            'PATH': f'{installed.venv / "bin"}:/usr/bin:/bin', 'PIP_NO_INDEX': '1', 'PIP_NO_DEPS': '1',
            'PIP_NO_BUILD_ISOLATION': '0', 'PIP_DISABLE_PIP_VERSION_CHECK': '1'}

    def run(self, command: str) -> tuple[int, str]:
        """The exit code of *command* and what it printed, on standard error too."""
        done = subprocess.run(['bash', '-c', command], cwd=self._folder, env=self._environment, timeout=300, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


def pip(*arguments: object) -> None:
    done = subprocess.run([sys.executable, '-m', 'pip', '--disable-pip-version-check', *map(str, arguments)],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def build_wheel(folder: pathlib.Path) -> pathlib.Path:
    """A wheel of the checkout's files, built from a copy: setuptools would pack what an earlier build left behind."""
    copy = folder / 'source'
    nothing_made = shutil.ignore_patterns('__pycache__', '*.egg-info')
    for name in ('designate_pool', 'migrations'):
        shutil.copytree(ROOT / name, copy / name, ignore=nothing_made)
    for name in ('setup.cfg', 'pyproject.toml', 'README.md', 'LICENSE'):
        shutil.copy(ROOT / name, copy)
    # Without isolation no build tool is downloaded: setuptools is one of the test requirements.
    pip('wheel', '--no-deps', '--no-build-isolation', '--wheel-dir', folder / 'wheel', copy)
    [wheel] = (folder / 'wheel').glob('*.whl')
    return wheel


@pytest.fixture(scope='module')
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp('wheel'))


def test_every_module_is_there_and_can_be_imported(installed: Installed) -> None:
    done = installed.run('python', '-c', IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    assert str(installed.venv) in done.stderr
    package = ROOT / 'designate_pool'
    modules = {'.'.join(('designate_pool', *path.relative_to(package).with_suffix('').parts)).removesuffix('.__init__')
               for path in package.rglob('*.py')}
    assert set(done.stdout.split()) == modules - {'designate_pool'}


def test_the_migrations_are_inside(installed: Installed) -> None:
    [inside] = installed.venv.glob('lib/*/site-packages/designate_pool/migrations')
    wanted = {path.relative_to(ROOT / 'migrations') for pattern in ('*.py', '*.mako')
              for path in (ROOT / 'migrations').rglob(pattern)}
    assert wanted == {path.relative_to(inside) for pattern in ('*.py', '*.mako') for path in inside.rglob(pattern)}
    assert len(wanted) >= 3


def test_a_new_database_can_be_made(installed: Installed) -> None:
    configuration = installed.folder / 'pool.conf'
    configuration.write_text(f'[DEFAULT]\nstate_path = {installed.folder}/state\n')
    done = installed.run('designate-pool-manage', 'database', 'upgrade', '--config-file', str(configuration))
    assert done.returncode == 0, done.stderr
    assert (installed.folder / 'state' / 'designate-pool.sqlite').stat().st_size > 0
    shown = installed.run('designate-pool-manage', '--config-file', str(configuration), 'database', 'version')
    found, needed = shown.stdout.removeprefix('The database is at ').split(', this program needs ')
    assert found == needed.strip().removesuffix('.')


def test_every_command_has_its_program(installed: Installed) -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg')
    commands = [line.split(' = ') for line in setup['options.entry_points']['console_scripts'].strip().splitlines()]
    assert len(commands) >= 8
    assert [command for command, _ in commands if not (installed.venv / 'bin' / command).exists()] == []
    called = [target.split(':') for _, target in commands]
    done = installed.run('python', '-c', '\n'.join(
        f'from {module} import {function}; assert callable({function})' for module, function in called))
    assert done.returncode == 0, done.stderr


def test_a_driver_of_another_package_is_made_by_its_page_alone(installed: Installed, tmp_path: pathlib.Path) -> None:
    [page] = documentation.pages('driver')
    assert documentation.tell(Shell(installed, tmp_path), tmp_path, page) == 4  # type: ignore[arg-type]
