"""Why is a zone not ACTIVE?  Pure: what the API shows in, words out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

Json = dict[str, Any]
_DOING = {'CREATE': 'being created', 'UPDATE': 'being changed', 'DELETE': 'being deleted'}


def explain(shown: Json, now: datetime) -> Json:
    """What stands between a zone and ACTIVE.

    :param shown: what ``/v2/zones/{id}/servers`` says
    """
    behind = [each for each in shown['servers'] if not each['current']]
    return {
        'zone': shown['zone_name'],
        'headline': headline(shown),
        'status': shown['status'],
        'action': shown['action'],
        'serial': shown['serial'],
        'reported_serial': shown.get('reported_serial'),
        'needed': shown['needed'],
        'current': shown['current'],
        'total': shown['total'],
        'degraded': shown['status'] == 'ACTIVE' and bool(behind),
        'lacks': lacks(shown),
        'to_do': to_do(shown, behind),
        'servers': [server(each, now) for each in shown['servers']],
    }


def headline(shown: Json) -> str:
    name, serial, status = shown['zone_name'], shown['serial'], shown['status']
    missing = [each['name'] for each in shown['servers'] if not each['current']]
    if status == 'ACTIVE':
        if missing:
            return (f'{name} is ACTIVE at serial {serial} but degraded: {len(missing)} of {len(shown["servers"])} '
                    f'servers are behind ({", ".join(missing)})')
        return f'{name} is ACTIVE at serial {serial} on every server'
    what = _DOING.get(shown['action'], 'settling')
    if status == 'ERROR':
        failed = sum(each['status'] == 'ERROR' for each in shown['servers'])
        return f'{name} is in ERROR while {what}: {failed} of {len(shown["servers"])} servers failed'
    if shown['needed'] is None:
        return f'{name} is {status}, {what}'
    more = shown['needed'] - shown['current']
    if more <= 0:
        return f'{name} is {status}, {what}: enough servers are done, the report of it is under way'
    return f'{name} is {status}, {what}: waiting for {more} more of {shown["total"]} servers'


def lacks(shown: Json) -> str | None:
    """What the pool lacks; None when it lacks nothing."""
    if shown['needed'] is None or shown['current'] >= shown['needed']:
        return None
    if shown['action'] == 'DELETE':
        wanted = 'without the zone'
    else:
        wanted = f'at serial {shown["serial"]}'
    return (f'needs {shown["needed"]} of {shown["total"]} servers {wanted} '
            f'(threshold {shown["threshold_percentage"]} %), has {shown["current"]}')


def to_do(shown: Json, behind: list[Json]) -> str:
    if not behind:
        return 'nothing'
    failed = [each['name'] for each in behind if each['status'] == 'ERROR']
    if failed:
        return f'mend {", ".join(failed)}; the pool tries again by itself and brings it up to date'
    if shown['status'] == 'ACTIVE':
        return 'nothing: the pool brings the rest up to date by itself'
    return 'wait: the tries are under way'


def server(each: Json, now: datetime) -> Json:
    """One server's part, with the next try in seconds from *now*."""
    return {
        'name': each['name'],
        'action': each['action'],
        'status': each['status'],
        'current': each['current'],
        'serial': each['serial'],
        'expected_serial': each['expected_serial'],
        'attempts': each['attempts'],
        'last_error': each['last_error'],
        'next_try_in': _seconds(each['next_attempt_at'], now),
        'begun': each['created_at'] is not None,
    }


def _seconds(at: str | None, now: datetime) -> float | None:
    if at is None:
        return None
    due = datetime.fromisoformat(at).replace(tzinfo=timezone.utc)
    return round(max(0.0, (due - now).total_seconds()), 1)


def text(explained: Json) -> str:
    """For people."""
    rows = [('', 'server', 'action', 'status', 'serial', 'wanted', 'tries', 'next try')]
    notes = []
    for each in explained['servers']:
        rows.append(('ok' if each['current'] else '--', each['name'], each['action'],
                     each['status'] if each['begun'] else 'not begun', _or_dash(each['serial']),
                     'gone' if each['action'] == 'DELETE' else str(each['expected_serial']), str(each['attempts']),
                     _due(each)))
        notes.append(f'      {each["last_error"]}' if each['last_error'] and not each['current'] else None)
    lines = [f'{explained["headline"]}.', '']
    for number, line in enumerate(_table(rows)):
        lines.append(line)
        if number and (note := notes[number - 1]):
            lines.append(note)
    lines.append('')
    if explained['lacks']:
        lines.append(f'The pool {explained["lacks"]}.')
    lines.append(f'To do: {explained["to_do"]}.')
    return '\n'.join(lines) + '\n'


def _due(each: Json) -> str:
    if each['next_try_in'] is None:
        return '-'
    return 'now' if each['next_try_in'] == 0 else f'in {each["next_try_in"]:g} s'


def _or_dash(value: Any) -> str:
    return '-' if value is None else str(value)


def _table(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield '  ' + '  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
