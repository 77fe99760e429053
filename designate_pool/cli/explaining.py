"""Why is a zone not ACTIVE?  Pure: what the API shows in, words out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

Json = dict[str, Any]
_RESTING = {'maintenance': 'in maintenance', 'joining': 'joining'}
_UNITS = ((86400, 'day'), (3600, 'hour'), (60, 'minute'), (1, 'second'))
_DOING = {'CREATE': 'being created', 'UPDATE': 'being changed', 'DELETE': 'being deleted'}


def explain(shown: Json, now: datetime) -> Json:
    """What stands between a zone and ACTIVE.

    :param shown: what ``/v2/zones/{id}/servers`` says
    """
    behind = [each for each in counting(shown) if not each['current']]
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
        'short': short(shown, now),
        'to_do': to_do(shown, behind),
        'servers': [server(each, now) for each in shown['servers']],
    }


def counting(shown: Json) -> list[Json]:
    """The servers that the threshold is about."""
    return [each for each in shown['servers'] if each['counts']]


def headline(shown: Json) -> str:
    name, serial, status, servers = shown['zone_name'], shown['serial'], shown['status'], counting(shown)
    missing = [each['name'] for each in servers if not each['current']]
    if status == 'ACTIVE':
        if missing:
            return (f'{name} is ACTIVE at serial {serial} but degraded: {len(missing)} of {len(servers)} '
                    f'servers are behind ({", ".join(missing)})')
        if not servers:
            return f'{name} is ACTIVE at serial {serial}, but no server of its pool counts now'
        every = 'every server' if len(servers) == len(shown['servers']) else 'every server that counts'
        return f'{name} is ACTIVE at serial {serial} on {every}'
    what = _DOING.get(shown['action'], 'settling')
    if status == 'ERROR':
        failed = sum(each['status'] == 'ERROR' for each in servers)
        return f'{name} is in ERROR while {what}: {failed} of {len(servers)} servers failed'
    if not servers:
        return f'{name} is {status}, {what}: no server of its pool counts now'
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


def short(shown: Json, now: datetime) -> str | None:
    """The servers that the pool has to do without for now; None when it has them all."""
    resting = [each for each in shown['servers'] if each['id'] in shown['resting']]
    if not resting:
        return None
    why = [f'{each["name"]} has been {_RESTING[each["state"]]} for {age(each["state_since"], now)}' for each in resting]
    return f'is short of {"one server" if len(why) == 1 else f"{len(why)} servers"}: {", ".join(why)}'


def age(since: str, now: datetime) -> str:
    """How long ago *since* was, in its largest unit."""
    passed = max(0, int((now - _moment(since)).total_seconds()))
    seconds, unit = next(((size, unit) for size, unit in _UNITS if passed >= size), _UNITS[-1])
    count = passed // seconds
    return f'{count} {unit}' if count == 1 else f'{count} {unit}s'


def to_do(shown: Json, behind: list[Json]) -> str:
    if not counting(shown):
        return "have a server count: 'designate-pool server list' shows where each stands"
    if not behind:
        return 'nothing'
    failed = [each['name'] for each in behind if each['status'] == 'ERROR']
    plans = [each['plan_id'] for each in behind if each.get('plan_id')]
    if plans:
        short = plans[0].replace('-', '')[:8]
        others = f', and {len(plans) - 1} more like it' if len(plans) > 1 else ''
        return (f"decide on the plan that waits{others}: 'designate-pool plan show {short}' shows it, "
                f"'designate-pool apply {short}' approves it")
    if failed:
        return f'mend {", ".join(failed)}; the pool tries again by itself and brings it up to date'
    if shown['status'] == 'ACTIVE':
        return 'nothing: the pool brings the rest up to date by itself'
    return 'wait: the tries are under way'


def server(each: Json, now: datetime) -> Json:
    """One server's part, with the next try in seconds from *now*."""
    return {
        'name': each['name'],
        'state': each['state'],
        'counts': each['counts'],
        'action': each['action'],
        'status': each['status'],
        'current': each['current'],
        'serial': each['serial'],
        'expected_serial': each['expected_serial'],
        'attempts': each['attempts'],
        'last_error': each['last_error'],
        'plan_id': each.get('plan_id'),
        'next_try_in': _seconds(each['next_attempt_at'], now),
        'begun': each['created_at'] is not None,
    }


def _seconds(at: str | None, now: datetime) -> float | None:
    if at is None:
        return None
    return round(max(0.0, (_moment(at) - now).total_seconds()), 1)


def _moment(text: str) -> datetime:
    """A time as the API writes it: in UTC, without saying so."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def text(explained: Json) -> str:
    """For people."""
    head = ('', 'server', 'state', 'action', 'status', 'serial', 'wanted', 'tries', 'next try')
    rows: list[tuple[str, ...]] = [head]
    notes = []
    for each in explained['servers']:
        rows.append((_mark(each), each['name'], each['state'], each['action'],
                     each['status'] if each['begun'] else 'not begun', _or_dash(each['serial']),
                     'gone' if each['action'] == 'DELETE' else str(each['expected_serial']), str(each['attempts']),
                     _due(each)))
        notes.append(f'      {each["last_error"]}' if each['last_error'] and not each['current'] else None)
    if all(each['state'] == 'active' for each in explained['servers']):
        rows = [(*row[:2], *row[3:]) for row in rows]
    lines = [f'{explained["headline"]}.', '']
    for number, line in enumerate(_table(rows)):
        lines.append(line)
        if number and (note := notes[number - 1]):
            lines.append(note)
    lines.append('')
    if explained['lacks']:
        lines.append(f'The pool {explained["lacks"]}.')
    if explained['short']:
        lines.append(f'The pool {explained["short"]}.')
    lines.append(f'To do: {explained["to_do"]}.')
    return '\n'.join(lines) + '\n'


def _mark(each: Json) -> str:
    """What does not count is not lacking either."""
    if each['current']:
        return 'ok'
    return '--' if each['counts'] else ''


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
