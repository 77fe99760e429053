"""``designate-pool status``, the pool on one screen, and ``designate-pool service list``."""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import shutil
import termios
import textwrap
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from typing import Any, TextIO

from designate_pool.cli import terminal
from designate_pool.cli.base import Argument, Lister, Shown, TextCommand, all_columns, delete_command, rows, seconds
from designate_pool.cli.client import ApiRefusal, Client, Json, Resource
from designate_pool.cli.connection import CliError
from designate_pool.cli.terminal import duration, fit, is_live, moment, padded

#: Gives a text the colour of a state.
Paint = Callable[[str, str], str]
#: The least lines that a part is cut to.
LEAST = 3
_NOT_SHOWN = 'not shown'


def screen_lines(found: Json, now: datetime, width: int, height: int, paint: Paint) -> list[str]:
    """The pool on one screen."""
    head = _head(found, now, paint)
    parts = [part for part in (
        _part('SERVERS', _servers(found['servers'], now, width, paint), found, 'servers'),
        _part('FAILING', _failing(found['servers']), found, 'servers'),
        _part('ZONES', _zones(found['zones'], paint), found, 'zones'),
        _part('SERVICES', _services(found['services'], now, paint), found, 'services'),
        _part('FOUND BY AUDITS', _findings(found['findings'], now), found, 'findings'),
        _part('RECENT CHANGES', _recent(found['recent'], now, width, paint), found, 'recent'),
    ) if part]
    shown = _fitted([[_wrapped(line, width) for line in part] for part in parts], height - len(head) - len(parts))
    lines = '\n'.join(_wrapped(line, width) for line in (*head, *(line for part in shown for line in ('', *part))))
    return lines.split('\n')[:height]


def _wrapped(line: str, width: int) -> str:
    """*line* as lines of *width*; no address or name is cut."""
    return line if terminal.width_of(line) <= width else '\n'.join(textwrap.wrap(
        line, width, subsequent_indent=' ' * 6, break_long_words=False, break_on_hyphens=False))


def _head(found: Json, now: datetime, paint: Paint) -> list[str]:
    state = paint(found['status'], 'ok' if found['status'] == 'ok' else 'ERROR')
    first = f'designate-pool {found["version"]} at {found["url"]}: {state}   {now:%Y-%m-%d %H:%M:%S} UTC'
    frozen = (f'Pool {pool["name"]}: {paint("frozen", "PENDING")}'
              f'{" until " + str(moment(pool["until"]))[:19] if pool["until"] else ""}: {pool["reason"]}'
              for pool in found.get('frozen') or ())
    faults = (f'{name.title()}: {found[name]}' for name in ('central', 'broker') if found[name] != 'ok')
    return [first, *faults, *frozen]


def _part(title: str, rows: Sequence[str], found: Json, key: str) -> list[str]:
    if found[key] is None:
        why = found['refused'].get(key)
        return [] if why is None or title == 'FAILING' else [f'{title}  {_NOT_SHOWN}: {why}']
    return [f'{title}  {rows[0]}'.rstrip(), *rows[1:]] if rows else []


def _servers(servers: Sequence[Json] | None, now: datetime, width: int, paint: Paint) -> list[str]:
    if not servers:
        return ['none'] if servers is not None else []
    rows: list[tuple[str, ...]] = [('', 'state', 'zones', 'behind', 'failing', 'oldest due')]
    for server in servers:
        oldest = '-' if server['oldest_due_at'] is None else _due(server['oldest_due_at'], now)
        name = f'{server["pool"]}: {server["name"]}' if 'pool' in server else server['name']
        counts = (str(server[name_]) for name_ in ('zones', 'waiting', 'failing'))
        silent = server['silent_since'] and f'silent since {moment(server["silent_since"]):%H:%M:%S}'
        rows.append((name, silent or server['state'], *counts, oldest))
    sizes = [max(len(cell) for cell in column) for column in zip(*rows)]
    sizes[0] = max(8, min(sizes[0], width - sum(sizes[1:]) - 2 * len(sizes) - 2))
    lines = []
    for row, shown in zip(rows, [None, *servers]):
        cells = [padded(row[0], sizes[0]), row[1].ljust(sizes[1]), *map(str.rjust, row[2:], sizes[2:])]
        if shown is not None:
            state = 'ERROR' if shown['silent_since'] else shown['state']
            word = 'ERROR' if shown['failing'] else 'PENDING' if shown['waiting'] else state
            cells[0] = paint(cells[0], word)
            cells[1] = paint(cells[1], state)
            cells[4] = paint(cells[4], 'ERROR') if shown['failing'] else cells[4]
        lines.append('  ' + '  '.join(cells))
    behind = sum(1 for server in servers if server['waiting'])
    active = sum(server['state'] == 'active' for server in servers)
    silent = sum(server['silent_since'] is not None for server in servers)
    return [f'{len(servers)}, {active} active, {behind} behind{f", {silent} silent" if silent else ""}', *lines]


def _failing(servers: Sequence[Json] | None) -> list[str]:
    failures = [(server, failure) for server in servers or () for failure in server['failures']]
    if not failures:
        return []
    count = sum(server['failing'] for server in servers or ())
    return [f'{count}, tried again by themselves; \'designate-pool zone explain ZONE\' tells more',
            *(f'  {failure["zone_name"]} {failure["action"]} on {server["name"]}: '
              f'{" ".join(str(failure["error"]).split())}' for server, failure in failures)]


def _zones(zones: Json | None, paint: Paint) -> list[str]:
    if zones is None:
        return []
    counts = [f'{zones["count"]} in all' if zones['count'] is not None else '']
    for status in ('PENDING', 'ERROR'):
        part = zones[status]
        count = f'{part["count"]}{"+" if part["more"] else ""}'
        counts.append(f'{paint(count, status) if part["count"] else count} {status}')
    return [', '.join(filter(None, counts)),
            *(f'  {paint("ERROR", "ERROR")}  {name}' for name in zones['ERROR']['names'])]


def _services(services: Sequence[Json] | None, now: datetime, paint: Paint) -> list[str]:
    if services is None:
        return []
    if not services:
        return ['none']
    down = [service for service in services if service['status'] != 'UP']
    counts = f'{len(services) - len(down)} up' + (f', {paint(f"{len(down)} down", "DOWN")}' if down else '')
    names = sorted({service['service_name'] for service in services if service['status'] == 'UP'})
    lines = [f'{counts}: {", ".join(names)}' if names else counts]
    lines += [f'  {paint(service["status"], service["status"])}  {service["service_name"]}'
              f'{" of " + service["pool_name"] if service.get("pool_name") else ""} on '
              f'{service["hostname"]}, last heartbeat {_ago(service["heartbeated_at"], now)} ago' for service in down]
    return lines


def _findings(findings: Sequence[Json] | None, now: datetime) -> list[str]:
    if not findings:
        return []
    unmended = sum(finding['mended'] is False for finding in findings)
    head = f"{unmended or 'none'} not repaired yet; 'designate-pool pool audit findings' tells more"
    return [head, *(f'  {finding["zone_name"]} on {finding["server_name"]}, {_ago(finding["found_at"], now)} ago: '
                    f'{finding["found"]}' for finding in findings)]


def _recent(recent: Sequence[Json] | None, now: datetime, width: int, paint: Paint) -> list[str]:
    if not recent:
        return ['none'] if recent is not None else []
    lines = ['']
    for zone in recent:
        at = zone.get('changed_at') or zone['updated_at'] or zone['created_at']
        tail = f'{str(zone["serial"]).rjust(10)}  {paint(zone["status"].ljust(7), zone["status"])}  ' \
               f'{(_ago(at, now) + " ago").replace("now ago", "now").rjust(14)}  {_taken(zone)}'
        lines.append(f'  {padded(zone["name"], max(12, width - 52))}  {tail}'.rstrip())
    return lines


def _taken(zone: Json) -> str:
    """How long the pool took to serve the change, where that is known."""
    if not zone.get('changed_at') or not zone.get('converged_at'):
        return ''
    taken = (moment(zone['converged_at']) - moment(zone['changed_at'])).total_seconds()
    return f'in {duration(taken)}' if taken >= 0 else ''


def _due(at: str, now: datetime) -> str:
    """How long something has been due, or in how long it will be."""
    remaining = (moment(at) - now).total_seconds()
    return f'in {duration(float(int(remaining) + 1))}' if remaining > 0 else _ago(at, now)


def _ago(at: str, now: datetime) -> str:
    passed = max(0.0, (now - moment(at)).total_seconds())
    return 'now' if passed < 1 else duration(float(int(passed)))


def _fitted(parts: Sequence[list[str]], room: int) -> Iterator[list[str]]:
    """*parts*, cut to *room* lines altogether: the longest lose entries first, and end with how many."""
    sizes = [len(part) for part in parts]
    while sum('\n'.join(part[:size]).count('\n') + 1 for part, size in zip(parts, sizes)) > room \
            and max(sizes, default=0) > LEAST:
        sizes[sizes.index(max(sizes))] -= 1
    for part, size in zip(parts, sizes):
        yield part if size >= len(part) else [*part[:size - 1], f'  and {len(part) - size + 1} more']


COLUMNS = ('service_name', 'hostname', 'pool_name', 'status', 'heartbeated_at', 'id', 'stats')
SERVICE = Resource('service_status', '/v2/service_statuses', name='id', noun='service',
                   help='id or the first four or more digits of it, as service list --long shows it')
ServiceDelete = delete_command(SERVICE, 'Forget a program that does not run any more; it goes by itself after a day.')


class ServiceList(Lister):
    """List the programs of designate-pool, and which of them are running."""

    long_columns = ('id', 'stats')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(COLUMNS, services(self.client))


def services(client: Client) -> Iterator[Json]:
    """The programs under their own names; the API lists them under those of Designate, of which one has two."""
    return ({**service, 'service_name': service['stats'].get('service_name', service['service_name']),
             'pool_name': service['stats'].get('pool_name')}
            for service in client.every('/v2/service_statuses', 'service_statuses')
            if service['service_name'] != 'producer')


WATCH_SECONDS = 2.0
#: How many zones of a status are counted at most, and how many recent changes are shown.
COUNTED, RECENT = 100, 5
#: Of how many failing servers the failures are fetched.
DETAILED = 3
#: Not fetched when Central does not answer: each would wait for its timeout.
_HEALTH = ('version', 'status', 'central', 'broker')
PARTS = ('servers', 'zones', 'services', 'recent', 'findings', 'frozen')
_ALTERNATE, _BACK, _HOME, _CLEAR = '\033[?1049h\033[?25l', '\033[?25h\033[?1049l', '\033[H', '\033[J'


class StatusCommand(TextCommand):
    """Show the pool on one screen: servers, zones, services, recent changes.

    What the token may not see is left out.  The exit code is 1 when the API or Central does not answer.
    """

    arguments = (
        Argument('--watch', nargs='?', type=seconds, const=WATCH_SECONDS, metavar='SECONDS',
                 help=f'refresh it at this interval until q or Ctrl-C; {WATCH_SECONDS:g} seconds if no '
                      'number is given (then put it last)'),)

    def run(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.watch is None:
            return super().run(parsed_args)
        if parsed_args.formatter == 'text' and is_live(self.app.stdout):
            self._watch_screen(parsed_args.watch)
        else:
            with contextlib.suppress(KeyboardInterrupt):  # the way to end it
                while True:  # one output after the other, for a program that reads them
                    super().run(parsed_args)
                    self.app.stdout.flush()
                    time.sleep(parsed_args.watch)
        return self.exit_code

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return all_columns(self._fetch())

    def text(self, found: Json) -> str:
        size = shutil.get_terminal_size((100, 24))
        height = size.lines - 1 if self.app.stdout.isatty() else 1000
        return '\n'.join(screen_lines(found, _now(), size.columns, height, self._paint())) + '\n'

    def _paint(self) -> Paint:
        return terminal.by_word if terminal.wanted(self.app.stdout) else lambda text, word: text

    def _fetch(self) -> Json:
        health = self.client.health()
        self.exit_code = 0 if health['status'] == 'ok' else 1
        overview: Json = {'url': self.client.url, **{name: health[name] for name in _HEALTH}, **dict.fromkeys(PARTS),
                          'refused': {}}
        if health['central'] != 'ok':
            return overview
        # Servers count the zones of all projects, so these are listed too.
        if not self.app.options.project:
            self.client.may_see_everything()
        parts: dict[str, Callable[[], Any]] = {'servers': self._servers, 'services': self._services,
                                               'recent': self._recent, 'findings': self._findings,
                                               'frozen': self._frozen}
        for name, fetch in parts.items():
            with _refusable(overview['refused'], name):
                overview[name] = fetch()
        with _refusable(overview['refused'], 'zones'):
            # Every server shows how many zones its pool has.
            pools = {server['pool_id']: server['zones'] for server in overview['servers'] or ()}
            count = sum(pools.values()) if pools else None
            overview['zones'] = {'count': count, **{status: self._zones(status) for status in ('PENDING', 'ERROR')}}
        return overview

    def _servers(self) -> Any:
        """All servers, the first failing ones with their failures, which a list does not have."""
        servers = self.client.get('/v2/servers')['servers']
        for server in [server for server in servers if server['failing']][:DETAILED]:
            server['failures'] = self.client.get(f'/v2/servers/{server["id"]}')['failures']
        several = len({server['pool_id'] for server in servers}) > 1
        names = self.client.pool_names() if several else {}
        return [{**{name: value for name, value in server.items() if name != 'links'},
                 **({'pool': names.get(server['pool_id'])} if several else {})} for server in servers]

    def _services(self) -> Any:
        columns = ('service_name', 'hostname', 'pool_name', 'status', 'heartbeated_at')
        return [{name: service.get(name) for name in columns} for service in services(self.client)]

    def _zones(self, status: str) -> Json:
        page = self.client.get('/v2/zones', status=status, limit=COUNTED)
        names = [zone['name'] for zone in page['zones']]
        return {'count': len(names), 'more': 'next' in page['links'], 'names': names[:RECENT]}

    def _findings(self) -> Any:
        """What audits found last, of all pools."""
        columns = ('found_at', 'zone_name', 'server_name', 'found', 'mended')
        findings = [finding for pool in self.client.every('/v2/pools', 'pools') for finding in
                    self.client.get(f'/v2/pools/{pool["id"]}/audits/findings', limit=RECENT)['findings']]
        findings.sort(key=lambda each: str(each['found_at']), reverse=True)
        return [{name: finding[name] for name in columns} for finding in findings[:RECENT]]

    def _frozen(self) -> Any:
        return [{'name': pool['name'], 'reason': pool['freeze']['reason'], 'until': pool['freeze']['until']}
                for pool in self.client.every('/v2/pools', 'pools') if pool.get('freeze')]

    def _recent(self) -> Any:
        columns = ('name', 'serial', 'status', 'action', 'changed_at', 'converged_at', 'created_at', 'updated_at')
        zones = self.client.get('/v2/zones', sort_key='updated_at', sort_dir='desc', limit=RECENT)['zones']
        return [{name: zone[name] for name in columns if name in zone} for zone in zones]

    def _watch_screen(self, pause: float) -> None:
        stdout, drawn = self.app.stdout, ''
        stdout.write(_ALTERNATE)
        try:
            with _keys(self.app.stdin) as pressed:
                while True:
                    size = shutil.get_terminal_size()
                    try:
                        lines = screen_lines(self._fetch(), _now(), size.columns, size.lines - 2, self._paint())
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
def _keys(stdin: TextIO) -> Iterator[Callable[[float], str]]:
    """A function that waits so many seconds for a key and returns it; an empty text when none was pressed."""
    if not stdin.isatty():
        yield lambda pause: select.select([], [], [], pause) and ''
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


def _now() -> datetime:
    return datetime.now(timezone.utc)
