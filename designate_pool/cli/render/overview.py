"""The pool on one screen.  Pure: documents of the API in, lines out that fit a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from designate_pool.cli.http.errors import Json
from designate_pool.cli.render.explain import duration, moment
from designate_pool.cli.render.live import fit, padded

#: Gives a text the colour of a state.
Paint = Callable[[str, str], str]
#: The least lines that a part is cut to.
LEAST = 3
_NOT_SHOWN = 'not shown'


def lines(found: Json, now: datetime, width: int, height: int, paint: Paint) -> list[str]:
    """
    :param found: what ``designate-pool status -f json`` shows
    :param height: how many lines there may be at most
    """
    head = _head(found, now, paint)
    parts = [part for part in (
        _part('SERVERS', _servers(found['servers'], now, width, paint), found, 'servers'),
        _part('FAILING', _failing(found['servers']), found, 'servers'),
        _part('ZONES', _zones(found['zones'], now, paint), found, 'zones'),
        _part('SERVICES', _services(found['services'], now, width, paint), found, 'services'),
        _part('FOUND BY AUDITS', _findings(found['findings'], now), found, 'findings'),
        _part('RECENT CHANGES', _recent(found['recent'], now, width, paint), found, 'recent'),
    ) if part]
    room = height - len(head) - sum(1 for _ in parts)
    shown = _fitted(parts, room)
    return [fit(line, width) for line in (*head, *(line for part in shown for line in ('', *part)))][:height]


def _head(found: Json, now: datetime, paint: Paint) -> list[str]:
    state = paint(found['status'], 'ok' if found['status'] == 'ok' else 'ERROR')
    first = f'designate-pool {found["version"]} at {found["url"]}: {state}   {now:%Y-%m-%d %H:%M:%S} UTC'
    return [first] if found['central'] == 'ok' else [first, f'Central: {found["central"]}']


def _part(title: str, rows: Sequence[str], found: Json, key: str) -> list[str]:
    if found[key] is None:
        why = found['refused'].get(key)
        return [] if why is None or title == 'FAILING' else [f'{title}  {_NOT_SHOWN}: {why}']
    return [f'{title}  {rows[0]}'.rstrip(), *rows[1:]] if rows else []


def _servers(servers: Sequence[Json] | None, now: datetime, width: int, paint: Paint) -> list[str]:
    if not servers:
        return ['none'] if servers is not None else []
    rows = [('', 'state', 'zones', 'behind', 'failing', 'oldest due')]
    for each in servers:
        oldest = '-' if each['oldest_due_at'] is None else _due(each['oldest_due_at'], now)
        name = f'{each["pool"]}: {each["name"]}' if 'pool' in each else each['name']
        rows.append((name, each['state'], str(each['domains']), str(each['waiting']), str(each['failing']), oldest))
    sizes = [max(len(cell) for cell in column) for column in zip(*rows)]
    sizes[0] = max(8, min(sizes[0], width - sum(sizes[1:]) - 2 * len(sizes) - 2))
    told = []
    for row, server in zip(rows, [None, *servers]):
        cells = [padded(row[0], sizes[0]), row[1].ljust(sizes[1]), *map(str.rjust, row[2:], sizes[2:])]
        if server is not None:
            word = 'ERROR' if server['failing'] else 'PENDING' if server['waiting'] else server['state']
            cells[0] = paint(cells[0], word)
            cells[1] = paint(cells[1], server['state'])
            cells[4] = paint(cells[4], 'ERROR') if server['failing'] else cells[4]
        told.append('  ' + '  '.join(cells))
    behind = sum(1 for each in servers if each['waiting'])
    active = sum(each['state'] == 'active' for each in servers)
    return [f'{len(servers)}, {active} active, {behind} behind', *told]


def _failing(servers: Sequence[Json] | None) -> list[str]:
    found = [(each, failure) for each in servers or () for failure in each['failures']]
    if not found:
        return []
    count = sum(each['failing'] for each in servers or ())
    return [f'{count}, tried again by themselves; \'designate-pool zone explain ZONE\' tells more',
            *(f'  {failure["zone_name"]} {failure["action"]} on {each["name"]}: '
              f'{" ".join(str(failure["error"]).split())}' for each, failure in found)]


def _zones(zones: Json | None, now: datetime, paint: Paint) -> list[str]:
    if zones is None:
        return []
    counts = [f'{zones["domains"]} in all' if zones['domains'] is not None else '']
    for status in ('PENDING', 'ERROR'):
        part = zones[status]
        count = f'{part["count"]}{"+" if part["more"] else ""}'
        counts.append(f'{paint(count, status) if part["count"] else count} {status}')
    told = [', '.join(filter(None, counts))]
    told += [f'  {paint("ERROR", "ERROR")}  {name}' for name in zones['ERROR']['names']]
    return told


def _services(services: Sequence[Json] | None, now: datetime, width: int, paint: Paint) -> list[str]:
    if services is None:
        return []
    if not services:
        return ['none']
    down = [each for each in services if each['status'] != 'UP']
    counts = f'{len(services) - len(down)} up' + (f', {paint(f"{len(down)} down", "DOWN")}' if down else '')
    names = sorted({each['service_name'] for each in services if each['status'] == 'UP'})
    told = [f'{counts}: {", ".join(names)}' if names else counts]
    told += [f'  {paint(each["status"], each["status"])}  {each["service_name"]}{_of_pool(each)} on '
             f'{each["hostname"]}, last heartbeat {_ago(each["heartbeated_at"], now)} ago' for each in down]
    return told


def _of_pool(service: Json) -> str:
    return f' of {service["pool_name"]}' if service.get('pool_name') else ''


def _findings(findings: Sequence[Json] | None, now: datetime) -> list[str]:
    if not findings:
        return []
    unmended = sum(each['mended'] is False for each in findings)
    head = f"{unmended or 'none'} not repaired yet; 'designate-pool pool audit findings' tells more"
    return [head, *(f'  {each["zone_name"]} on {each["server_name"]}, {_ago(each["found_at"], now)} ago: '
                    f'{each["found"]}' for each in findings)]


def _recent(recent: Sequence[Json] | None, now: datetime, width: int, paint: Paint) -> list[str]:
    if not recent:
        return ['none'] if recent is not None else []
    told = ['']
    for each in recent:
        at = each.get('changed_at') or each['updated_at'] or each['created_at']
        tail = f'{str(each["serial"]).rjust(10)}  {paint(each["status"].ljust(7), each["status"])}  ' \
               f'{(_ago(at, now) + " ago").rjust(14)}  {_taken(each)}'
        told.append(f'  {padded(each["name"], max(12, width - 52))}  {tail}'.rstrip())
    return told


def _taken(zone: Json) -> str:
    """How long the pool took to serve the change, where that is known."""
    if not zone.get('changed_at') or not zone.get('converged_at'):
        return ''
    taken = (moment(zone['converged_at']) - moment(zone['changed_at'])).total_seconds()
    return f'in {duration(taken)}' if taken >= 0 else ''


def _due(at: str, now: datetime) -> str:
    """How long something has been due, or in how long it will be."""
    left = (moment(at) - now).total_seconds()
    return f'in {duration(float(int(left) + 1))}' if left > 0 else _ago(at, now)


def _ago(at: str, now: datetime) -> str:
    passed = max(0.0, (now - moment(at)).total_seconds())
    return 'now' if passed < 1 else duration(float(int(passed)))


def _fitted(parts: Sequence[list[str]], room: int) -> Iterator[list[str]]:
    """*parts*, cut to *room* lines altogether: the longest lose lines first, and end with how many."""
    sizes = [len(part) for part in parts]
    while sum(sizes) > room and max(sizes, default=0) > LEAST:
        sizes[sizes.index(max(sizes))] -= 1
    for part, size in zip(parts, sizes):
        yield part if size >= len(part) else [*part[:size - 1], f'  and {len(part) - size + 1} more']
