"""``designate-pool status``: the pool on one screen, once or refreshed."""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import shutil
import signal
import time
import types
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any, TextIO

from designate_pool.cli.base import Shown, TextCommand, all_columns, seconds
from designate_pool.cli.commands.pools import services
from designate_pool.cli.http.errors import ApiRefusal, CliError, Json
from designate_pool.cli.render import colours, overview
from designate_pool.cli.render.live import fit, is_live

try:
    import termios
    import tty
except ImportError:  # without them only Ctrl-C ends the watch
    termios = tty = None  # type: ignore[assignment]

WATCH_SECONDS = 2.0
#: How many zones of a status are counted at most, and how many recent changes are shown.
COUNTED, RECENT = 100, 5
#: Of how many failing servers the failures are fetched.
DETAILED = 3
#: Not fetched when Central does not answer: each would wait for its timeout.
PARTS = ('servers', 'zones', 'services', 'recent', 'findings')
_ALTERNATE, _BACK, _HOME, _CLEAR = '\033[?1049h\033[?25l', '\033[?25h\033[?1049l', '\033[H', '\033[J'


class ShowStatus(TextCommand):
    """Show the pool on one screen: servers, zones, services, recent changes.

    What the token may not see is left out.  The exit code is 1 when the API or Central does not answer.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--watch', nargs='?', type=seconds, const=WATCH_SECONDS, metavar='SECONDS',
                            help=f'refresh it at this interval until q or Ctrl-C; {WATCH_SECONDS:g} seconds if no '
                                 'number is given (then put it last)')

    def run(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.watch is None:
            return super().run(parsed_args)
        if parsed_args.formatter == 'text' and is_live(self.app.stdout):
            self._watch_screen(parsed_args.watch)
        else:
            self._watch_lines(parsed_args)
        return self.exit_code

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return all_columns(self._fetch())

    def text(self, found: Json) -> str:
        size = shutil.get_terminal_size((100, 24))
        height = size.lines - 1 if self.app.stdout.isatty() else 1000
        return '\n'.join(overview.lines(found, _now(), size.columns, height, self._paint())) + '\n'

    def _paint(self) -> overview.Paint:
        return colours.by_word if colours.wanted(self.app.stdout) else lambda text, word: text

    def _fetch(self) -> Json:
        health = self.client.health()
        self.exit_code = 0 if health['status'] == 'ok' else 1
        found: Json = {'url': self.client.url, **{name: health[name] for name in ('version', 'status', 'central')},
                       **dict.fromkeys(PARTS), 'refused': {}}
        if self.exit_code:
            return found
        # Servers count the zones of all projects, so these are listed too.
        if not self.app.options.project:
            self.client.may_see_everything()
        parts: dict[str, Callable[[], Any]] = {'servers': self._servers, 'services': self._services,
                                               'recent': self._recent, 'findings': self._findings}
        for name, fetch in parts.items():
            with _refusable(found['refused'], name):
                found[name] = fetch()
        with _refusable(found['refused'], 'zones'):
            # Every server shows how many zones its pool has.
            pools = {each['pool_id']: each['domains'] for each in found['servers'] or ()}
            domains = sum(pools.values()) if pools else None
            found['zones'] = {'domains': domains, **{status: self._zones(status) for status in ('PENDING', 'ERROR')}}
        return found

    def _servers(self) -> Any:
        """All servers, the first failing ones with their failures, which a list does not have."""
        found = self.client.get('/v2/servers')['servers']
        for each in [each for each in found if each['failing']][:DETAILED]:
            each['failures'] = self.client.get(f'/v2/servers/{each["id"]}')['failures']
        several = len({each['pool_id'] for each in found}) > 1
        names = self.client.pool_names() if several else {}
        return [{**{name: value for name, value in each.items() if name != 'links'},
                 **({'pool': names.get(each['pool_id'])} if several else {})} for each in found]

    def _services(self) -> Any:
        wanted = ('service_name', 'hostname', 'pool_name', 'status', 'heartbeated_at')
        return [{name: each.get(name) for name in wanted} for each in services.services(self.client)]

    def _zones(self, status: str) -> Json:
        page = self.client.get('/v2/zones', status=status, limit=COUNTED)
        names = [each['name'] for each in page['zones']]
        return {'count': len(names), 'more': 'next' in page['links'], 'names': names[:RECENT]}

    def _findings(self) -> Any:
        """What audits found last, of all pools."""
        wanted = ('found_at', 'zone_name', 'server_name', 'found', 'mended')
        found = [each for pool in self.client.every('/v2/pools', 'pools') for each in
                 self.client.get(f'/v2/pools/{pool["id"]}/audits/findings', limit=RECENT)['findings']]
        found.sort(key=lambda each: str(each['found_at']), reverse=True)
        return [{name: each[name] for name in wanted} for each in found[:RECENT]]

    def _recent(self) -> Any:
        wanted = ('name', 'serial', 'status', 'action', 'changed_at', 'converged_at', 'created_at', 'updated_at')
        found = self.client.get('/v2/zones', sort_key='updated_at', sort_dir='desc', limit=RECENT)['zones']
        return [{name: each[name] for name in wanted if name in each} for each in found]

    def _watch_screen(self, pause: float) -> None:
        stdout, drawn = self.app.stdout, ''
        stdout.write(_ALTERNATE)
        try:
            with _interrupted() as interrupted, _keys(self.app.stdin) as pressed:
                while not interrupted():
                    size = shutil.get_terminal_size()
                    try:
                        lines = overview.lines(self._fetch(), _now(), size.columns, size.lines - 2, self._paint())
                    except CliError as failure:  # the API may be back at the next look
                        self.exit_code = 1
                        lines = [fit(str(failure), size.columns)]
                    drawn = ''.join(f'{line}\033[K\n' for line in lines)
                    stdout.write(f'{_HOME}{drawn}\n{fit(f"every {pause:g} s; q ends", size.columns)}\033[K{_CLEAR}')
                    stdout.flush()
                    if pressed(pause) in ('q', 'Q'):
                        break
        except KeyboardInterrupt:  # the way to end it
            pass
        finally:
            stdout.write(_BACK + drawn)
            stdout.flush()

    def _watch_lines(self, parsed_args: argparse.Namespace) -> None:
        """One output after the other, for a program that reads them."""
        try:
            while True:
                super().run(parsed_args)
                self.app.stdout.flush()
                time.sleep(parsed_args.watch)
        except KeyboardInterrupt:  # the way to end it
            pass


@contextlib.contextmanager
def _refusable(refused: dict[str, str], name: str) -> Iterator[None]:
    """Record why a part is not shown; the user may be allowed to see the other parts."""
    try:
        yield
    except ApiRefusal as error:
        # An API without a database has no findings, and answers that the database does not answer.
        if error.status not in (403, 404, 501, *((503,) if name == 'findings' else ())):
            raise
        refused[name] = str(error)


@contextlib.contextmanager
def _interrupted() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed, even where Python dropped the exception, as it does in a callback."""
    seen = False

    def interrupt(number: int, frame: types.FrameType | None) -> None:
        nonlocal seen
        seen = True
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGINT, interrupt)
    try:
        yield lambda: seen
    finally:
        signal.signal(signal.SIGINT, former)


@contextlib.contextmanager
def _keys(stdin: TextIO) -> Iterator[Callable[[float], str]]:
    """A function that waits so many seconds for a key and returns it; an empty text when none was pressed."""
    if termios is None or not stdin.isatty():
        yield _no_key
        return
    descriptor = stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        # Read past the buffer of the stream: select does not see what is in it.
        yield lambda pause: os.read(descriptor, 1).decode('latin-1') \
            if select.select([descriptor], [], [], pause)[0] else ''
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _no_key(pause: float) -> str:
    time.sleep(pause)
    return ''


def _now() -> datetime:
    return datetime.now(timezone.utc)
