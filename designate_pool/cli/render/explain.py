"""The layout of the API's explanation why a zone is not ACTIVE.  Pure: the sentences are the API's."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from designate_pool.cli.http.errors import Json

_INDENT = ' ' * 6


def text(explained: Mapping[str, Any], now: datetime, width: int = 100) -> str:
    """The explanation of a zone for people.

    :param explained: what ``/v2/zones/{id}/explain`` answers
    :param width: of the lines that sentences are broken into
    """
    lines = [explained['summary'], '', *_servers(explained['servers'], now, width), '']
    if explained.get('secondary'):
        lines += [*master_lines(explained['secondary'], now, width), '']
    if explained['lacking']:
        lines.append(explained['lacking'])
    if explained.get('former_pool'):
        lines.append(_kept(explained['former_pool'], now))
    changed = _changed(explained, now)
    if changed is not None:
        lines.append(changed)
    if explained.get('also_notifies'):
        lines.append(f'Also notified of each change: {", ".join(explained["also_notifies"])}')
    lines += _findings(explained.get('findings', ()))
    advice = explained['advice'] or ['nothing.']
    if len(advice) == 1:
        lines.append(f'To do: {advice[0]}')
    else:
        lines += ['To do:', *(f'  - {line}' for line in advice)]
    return '\n'.join(lines) + '\n'


def _servers(servers: Sequence[Json], now: datetime, width: int) -> Iterator[str]:
    """A line for each server, and below it the explanation if it is behind or does not count."""
    rows: list[tuple[str, ...]] = [('', 'server', 'state', 'action', 'status', 'serial', 'wanted', 'tries', 'next try')]
    for server in servers:
        rows.append((_mark(server), server['name'], server['state'], server['action'],
                     _status(server), _or_dash(server['serial']),
                     'gone' if server['action'] == 'DELETE' else str(server['expected_serial']),
                     str(server['attempts']),
                     'polled now' if _is_polled(server, now) else _next_try(server['next_attempt_at'], now)))
    if all(server['state'] == 'active' for server in servers):
        rows = [(*row[:2], *row[3:]) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for number, row in enumerate(rows):
        yield '  ' + '  '.join(cell.ljust(size) for cell, size in zip(row, widths)).rstrip()
        if number and not (servers[number - 1]['current'] and servers[number - 1]['counts']):
            yield from textwrap.wrap(servers[number - 1]['state_of'], width, initial_indent=_INDENT,
                                     subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)


def master_lines(found: Mapping[str, Any], now: datetime, width: int) -> Iterator[str]:
    """How a secondary zone follows its masters, for people."""
    yield f'Masters: {", ".join(found["masters"])}'
    if found['checked_at'] is not None:
        yield (f'Refreshed last from {found["checked_with"]}, '
               f'{duration(max(0.0, (now - moment(found["checked_at"])).total_seconds()))} ago; it expires '
               f'{_in(found["expires_at"], now)} unless a master is reached.')
    elif not found['served']:
        yield 'It has never been transferred.'
    if found['last_error']:
        number = f'{found["failures"]} {"refresh" if found["failures"] == 1 else "refreshes"}'
        yield from textwrap.wrap(f'{number} failed since: {found["last_error"]}', width, subsequent_indent=_INDENT,
                                 break_long_words=False, break_on_hyphens=False)
    if found['next_refresh_at'] is not None:
        yield f'Next refresh: {_in(found["next_refresh_at"], now)}.'


def _kept(former: Mapping[str, Any], now: datetime) -> str:
    until = 'until its own pool serves it' if former['until'] is None else (
        f'for another {duration(max(0.0, (moment(former["until"]) - now).total_seconds()))}')
    return f'The servers of the pool {former["name"]}, which it was moved from, keep it {until}.'


def _in(at: str, now: datetime) -> str:
    remaining = (moment(at) - now).total_seconds()
    return f'in {duration(remaining)}' if remaining > 0 else 'now'


def _findings(findings: Sequence[Json]) -> Iterator[str]:
    """A line for each recent finding of an audit."""
    for finding in findings:
        ending = {True: 'repaired', False: 'not repaired yet', None: 'no longer relevant'}[finding['mended']]
        yield (f'Found at {moment(finding["found_at"]):%Y-%m-%d %H:%M:%S} UTC by the audit of '
               f'{finding["kind"].lower()}, on {finding["server_name"]}: {finding["found"]}; '
               f'{finding["done"]}: {ending} ({finding["request_id"]}).')


def _changed(explained: Mapping[str, Any], now: datetime) -> str | None:
    """When the zone was changed last, and how long it took until the pool served that."""
    if explained['changed_at'] is None:
        return None
    changed = moment(explained['changed_at'])
    request = f' by request {explained["request_id"]}' if explained['request_id'] else ''
    text = f'Changed last at {changed:%Y-%m-%d %H:%M:%S} UTC{request}'
    if explained['converged_at'] is not None and (taken := moment(explained['converged_at']) - changed).days >= 0:
        return f'{text}; the pool had that after {duration(taken.total_seconds())}.'
    return f'{text}, {duration(max(0.0, (now - changed).total_seconds()))} ago.'


def duration(seconds: float) -> str:
    """Seconds in their two largest units."""
    if seconds < 10:
        return f'{seconds * 1000:.0f} ms' if seconds < 1 else f'{seconds:.1f} s'
    whole = int(seconds)
    for size, unit, smaller, lesser in ((86400, 'd', 3600, 'h'), (3600, 'h', 60, 'min'), (60, 'min', 1, 's')):
        if whole >= size:
            rest = whole % size // smaller
            return f'{whole // size} {unit} {rest} {lesser}' if rest else f'{whole // size} {unit}'
    return f'{whole} s'


def moment(text: str) -> datetime:
    """A time as the API writes it: in UTC, without saying so."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def _mark(each: Mapping[str, Any]) -> str:
    """A server that does not count is not marked as behind."""
    if each['current']:
        return 'ok'
    return '--' if each['counts'] else ''


def _status(each: Json) -> str:
    if not each['created_at']:
        return 'not begun'
    return 'DIVERGED' if each['diverged'] else str(each['status'])


def _is_polled(each: Json, now: datetime) -> bool:
    """Whether the tries of a round are under way; the next one is only due if they fail."""
    return not each['current'] and each['deadline_at'] is not None and moment(each['deadline_at']) > now


def _next_try(at: str | None, now: datetime) -> str:
    if at is None:
        return '-'
    remaining = round(max(0.0, (moment(at) - now).total_seconds()), 1)
    return 'now' if remaining == 0 else f'in {remaining:g} s'


def _or_dash(value: Any) -> str:
    return '-' if value is None else str(value)
