"""``designate-pool-sync`` as a process: once, in a loop, told by files and by signals, and how it ends."""

from __future__ import annotations

import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from designate_pool.cmd.programs.sync import SyncRuns, run_repeatedly
from testing import warm
from testing.processes import patience, wait_until
from tests.fixtures.commands import Folder

CONFIG = '''
providers:
  files: {class: zonefile, directory: zones, file_extension: .zone, check_origin: false}
  out: {class: yaml, directory: out, root_ns_warnings: false}
zones:
  '*': {sources: [files], targets: [out]}
'''
HOSTS = ''.join(f'host{number} 300 A 192.0.2.{number}\n' for number in range(100, 112))
ZONE = 'example.com'
COMMAND = ('designate_pool.cmd.programs.sync', '--config', 'sync.yaml')


class Repository(Folder):
    """A folder with zone files, and one that the zones are written to as YAML."""

    def target(self, zone: str = ZONE) -> str:
        path = self.path / 'out' / f'{zone}.yaml'
        return path.read_text() if path.exists() else ''

    def once(self, *words: str, code: int = 0) -> str:
        """What one run tells."""
        done = warm.run(*COMMAND, '--once', *words, cwd=self.path)
        assert done.returncode == code, f'{words} ended with {done.returncode}\n{done.stdout}\n{done.stderr}'
        return done.stderr


class Loop:
    """The program in its loop."""

    def __init__(self, repository: Repository, *words: str) -> None:
        self.process = warm.Program(COMMAND[0], [*COMMAND[1:], *words], repository.path / 'log', cwd=repository.path,
                                    env={**os.environ, 'PYTHONUNBUFFERED': '1'}).start()
        wait_until(lambda: self.process.running() and 'sync: ready' in self.log, 'the program is ready')

    @property
    def log(self) -> str:
        return self.process.log.read_text()

    @property
    def runs(self) -> int:
        """How many runs have been told of."""
        return self.log.count('Nothing to do') + self.log.count('In all ')

    def until(self, condition: Callable[[], object], what: str) -> None:
        wait_until(lambda: self.process.running() and condition(), f'{what}\n{self.log}', seconds=60)

    def ends(self, number: int = signal.SIGTERM) -> float:
        """The seconds that it takes to end in good order."""
        began = time.monotonic()
        self.process.signal(number)
        assert self.process.wait(20) == 0
        return time.monotonic() - began


@pytest.fixture
def git(tmp_path: pathlib.Path) -> Repository:
    made = Repository(tmp_path)
    made.write('sync.yaml', CONFIG)
    made.write(f'zones/{ZONE}.zone', 'www 300 A 192.0.2.1\n')
    return made


@pytest.fixture
def loop(git: Repository) -> Iterator[Callable[..., Loop]]:
    started: list[Loop] = []

    def start(*words: str) -> Loop:
        started.append(Loop(git, *words))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()


class TestOnce:
    def test_twice(self, git: Repository) -> None:
        assert 'In all 1 to create' in git.once('--dry-run')
        assert git.target() == ''
        assert 'In all 1 to create' in git.once()
        assert '192.0.2.1' in git.target()
        assert 'Nothing to do' in git.once()

    def test_what_cannot_be_read_is_a_failure_and_the_rest_is_done(self, git: Repository) -> None:
        git.write('zones/broken.example.zone', 'www A x\n')
        assert 'broken.example.zone, line 1' in git.once(code=1)
        assert '192.0.2.1' in git.target()

    def test_a_broken_configuration(self, git: Repository) -> None:
        git.change('sync.yaml', 'targets', 'target')
        told = git.once(code=1)
        assert 'zones.*.target: there is no such key (did you mean targets?)' in told


class TestLoop:
    def test_a_forced_zone_that_is_gone_keeps_no_other_from_being_done(
            self, git: Repository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        monkeypatch.chdir(git.path)
        runs = SyncRuns('sync.yaml', ['gone.example.', f'{ZONE}.'], False)
        runs.repeat()
        assert '192.0.2.1' in git.target()
        assert 'gone.example. is to be forced, but there is no such zone' in caplog.text
        git.write(f'zones/{ZONE}.zone', HOSTS)
        runs.repeat()
        git.write(f'zones/{ZONE}.zone', 'host100 300 A 192.0.2.100\n')
        runs.repeat()
        assert '192.0.2.101' not in git.target(), 'it was not forced'

    def test_a_pool_that_does_not_answer_keeps_no_other_target_from_a_forced_change(
            self, git: Repository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        monkeypatch.chdir(git.path)
        git.change('sync.yaml', 'zones:\n', '  away: {class: pool, url: "http://127.0.0.1:9"}\nzones:\n')
        git.change('sync.yaml', '[out]', '[out, away]')
        SyncRuns('sync.yaml', [f'{ZONE}.'], False).repeat()
        assert '192.0.2.1' in git.target()
        assert 'away: ' in caplog.text

    def test_a_dry_run_does_not_tell_that_what_is_unsafe_was_not_applied(
            self, git: Repository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        monkeypatch.chdir(git.path)
        caplog.set_level('INFO')
        git.write(f'zones/{ZONE}.zone', HOSTS)
        SyncRuns('sync.yaml', [], False).repeat()
        git.write(f'zones/{ZONE}.zone', 'host100 300 A 192.0.2.100\n')
        SyncRuns('sync.yaml', [], True).repeat()
        assert 'Unsafe' in caplog.text and 'Not applied' not in caplog.text

    def test_at_the_start_and_then_again_and_again(self, git: Repository, loop: Callable[..., Loop]) -> None:
        running = loop('--interval', '1', '--min-event-interval', '0.1')
        running.until(lambda: '192.0.2.1' in git.target(), 'the first run is done')
        git.change(f'zones/{ZONE}.zone', '192.0.2.1', '192.0.2.2')
        running.until(lambda: '192.0.2.2' in git.target(), 'the next run is done')
        assert 'out: 1 changes applied, 0 zones failed' in running.log
        assert running.ends() < 10

    def test_when_files_change(self, git: Repository, loop: Callable[..., Loop]) -> None:
        running = loop('--interval', '1000', '--events', '--min-event-interval', '0.1')
        running.until(lambda: '192.0.2.1' in git.target(), 'the first run is done')
        git.write('zones/example.net.zone', 'www 300 A 192.0.2.3\n')
        running.until(lambda: '192.0.2.3' in git.target('example.net'), 'the new file is seen')
        git.write(f'zones/{ZONE}.zone', 'www 300 A 192.0.2.4\n')
        running.until(lambda: '192.0.2.4' in git.target(), 'the changed file is seen')
        # What is removed is seen as well, and left as it is: nobody said that the zone is to go.
        before = running.runs
        (git.path / 'zones' / 'example.net.zone').unlink()
        running.until(lambda: running.runs > before, 'the removed file is seen')
        assert '192.0.2.3' in git.target('example.net')
        assert running.ends() < 10

    def test_what_a_run_writes_itself_is_no_event(self, git: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(git.path)
        git.change('sync.yaml', 'providers:', 'manager:\n  plan_outputs: {page: {class: html, output_filename: '
                   'zones/plan.html}}\nproviders:')
        runs = SyncRuns('sync.yaml', (), dry_run=False)
        before = runs.stamps()
        runs.repeat()
        assert (git.path / 'zones' / 'plan.html').exists() and runs.stamps() == before
        git.write(f'zones/{ZONE}.zone', 'www 300 A 192.0.2.4\n')
        assert runs.stamps() != before

    def test_files_that_are_included_are_watched_and_read(self, git: Repository,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(git.path)
        git.change('sync.yaml', 'directory: zones, file_extension: .zone', 'file: all.zone')
        git.change('sync.yaml', "  '*'", f"  '{ZONE}.'")
        git.change('sync.yaml', '{class: yaml, directory: out, root_ns_warnings: false}', '!include target.yaml')
        git.write('target.yaml', '{class: yaml, directory: out, root_ns_warnings: false}\n')
        git.write('all.zone', f'$INCLUDE zones/{ZONE}.zone\n')
        runs = SyncRuns('sync.yaml', (), dry_run=False)
        runs.repeat()
        before = runs.stamps()
        git.write(f'zones/{ZONE}.zone', 'www 300 A 192.0.2.40\n')
        assert runs.stamps() != before
        before = runs.stamps()
        git.write('target.yaml', '{class: yaml, directory: elsewhere, root_ns_warnings: false}\n')
        assert runs.stamps() != before
        runs.repeat()
        assert '192.0.2.40' in (git.path / 'elsewhere' / f'{ZONE}.yaml').read_text()

    def test_when_files_change_too_often(self, git: Repository, loop: Callable[..., Loop]) -> None:
        running = loop('--interval', '1000', '--events', '--min-event-interval', '1000')
        running.until(lambda: running.runs == 1 and '192.0.2.1' in git.target(), 'the first run is done')
        git.write(f'zones/{ZONE}.zone', 'www 300 A 192.0.2.4\n')
        running.until(lambda: 'files have changed' in running.log, 'the change is seen')
        assert running.ends() < 10
        assert running.runs == 1 and '192.0.2.1' in git.target()

    @pytest.mark.parametrize('interval, has_event', [(0.01, False), (1000.0, True)], ids=['interval', 'event'])
    def test_a_run_that_fails_is_logged_and_the_next_comes(self, interval: float, has_event: bool,
                                                           caplog: pytest.LogCaptureFixture) -> None:
        """An event during a run brings the next one forward."""
        hasten, stop, begun = threading.Event(), threading.Event(), []

        def run() -> None:
            begun.append(time.monotonic())
            if len(begun) == 3:
                stop.set()
            if len(begun) == 3 or has_event:
                hasten.set()
            raise LookupError('the source is away')

        run_repeatedly(run, interval, 0.02, hasten, stop)
        assert ['the source is away' in (record.exc_text or '') for record in caplog.records] == [True] * 3
        assert min(begun[1] - begun[0], begun[2] - begun[1]) > 0.015, 'not more often than that'

    def test_an_end_that_comes_before_a_run_is_not_missed(self) -> None:
        hasten, stop = threading.Event(), threading.Event()

        def look() -> bool:
            was_set = threading.Event.is_set(stop)
            stop.set()
            hasten.set()
            return was_set

        stop.is_set = look  # type: ignore[method-assign]
        thread = threading.Thread(target=run_repeatedly, args=(lambda: None, 1000.0, 0.02, hasten, stop), daemon=True)
        thread.start()
        thread.join(patience(10))
        assert not thread.is_alive()

    def test_at_sighup(self, git: Repository, loop: Callable[..., Loop]) -> None:
        running = loop('--interval', '1000', '--min-event-interval', '0.1')
        running.until(lambda: '192.0.2.1' in git.target(), 'the first run is done')
        for address in ('192.0.2.2', '192.0.2.3'):
            git.write(f'zones/{ZONE}.zone', f'www 300 A {address}\n')
            running.process.signal(signal.SIGHUP)
            running.until(lambda: address in git.target(), f'{address} is there')
        assert running.ends(signal.SIGINT) < 10

    def test_the_configuration_is_read_again_and_a_broken_one_changes_nothing(
            self, git: Repository, loop: Callable[..., Loop]) -> None:
        running = loop('--interval', '1000', '--events', '--min-event-interval', '0.1')
        running.until(lambda: '192.0.2.1' in git.target(), 'the first run is done')
        git.write('sync.yaml', CONFIG + 'zone: {}\n')
        running.until(lambda: 'sync.yaml cannot be used' in running.log and running.runs >= 2, 'it is seen')
        assert 'zone: there is no such key (did you mean zones?)' in running.log
        git.write(f'zones/{ZONE}.zone', 'www 300 A 192.0.2.2\n')
        running.until(lambda: '192.0.2.2' in git.target(), 'the old configuration is kept')
        assert running.log.count('sync.yaml cannot be used') == 1, 'told once, and not at every run'
        git.write('sync.yaml', CONFIG.replace('directory: out', 'directory: new'))
        running.until(lambda: (git.path / 'new' / f'{ZONE}.yaml').exists(), 'the new one is read')
        assert running.ends() < 10

    def test_what_is_unsafe_waits_and_what_fails_is_tried_again_and_the_rest_goes_on(
            self, git: Repository, loop: Callable[..., Loop]) -> None:
        git.write(f'zones/{ZONE}.zone', HOSTS)
        git.write('zones/broken.example.zone', 'www A x\n')
        running = loop('--interval', '1000', '--events', '--min-event-interval', '0.1')
        running.until(lambda: 'host111' in git.target(), 'the first run is done')
        git.write(f'zones/{ZONE}.zone', 'host100 300 A 192.0.2.100\n')
        git.write('zones/example.net.zone', 'www 300 A 192.0.2.3\n')
        running.until(lambda: '192.0.2.3' in git.target('example.net'), 'what is safe is done')
        assert '11 of 12 RRsets would be deleted' in running.log and 'host111' in git.target()
        hint = f'designate-pool apply --yes {ZONE}. --target out --force {ZONE}. --config sync.yaml'
        running.until(lambda: hint in running.log, 'the rest is told')
        git.write('zones/broken.example.zone', 'www 300 A 192.0.2.5\n')
        running.until(lambda: '192.0.2.5' in git.target('broken.example'), 'what was broken is mended')
        git.run(*hint.split()[1:])
        assert 'host111' not in git.target()
        assert running.ends() < 10

    def test_a_dry_run_changes_nothing(self, git: Repository, loop: Callable[..., Loop]) -> None:
        running = loop('--interval', '0.1', '--min-event-interval', '0.1', '--dry-run')
        running.until(lambda: running.runs >= 2, 'two runs are done')
        assert git.target() == ''
        assert running.ends() < 10

    def test_a_run_that_hangs_does_not_keep_it_from_ending(self, git: Repository, loop: Callable[..., Loop]) -> None:
        git.change('sync.yaml', '{class: yaml, directory: out, root_ns_warnings: false}',
                   '{class: fake, on_populate: hang, timeout: 1000}')
        git.change('sync.yaml', 'providers:', 'manager: {max_workers: 2}\nproviders:')
        running = loop('--interval', '1')
        assert running.ends() < 10
        assert 'stopped in the middle of a run' in running.log


def test_what_cannot_be_asked_for(git: Repository) -> None:
    for words in (['--interval', '0'], ['--min-event-interval', 'x'], ['--force', 'a..b'], ['--nothing']):
        assert words[0] in git.once(*words, code=2)
