"""The pages as functions of values."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from designate_pool.api.schema.answers import FREEZE, read_moment
from designate_pool.api.status.html import (Content, Html, age, el, facts, join, moment, number, page, section, span,
                                            state, table, until)
from designate_pool.api.views.explain import frozen
from designate_pool.model import (Action, Audit, AuditKind, Counts, Domain, Freeze, ServerReport, ServerState,
                                  ServiceStatus, Status, Version, dashed)
from designate_pool.storage.reporting.dashboard import RecentChange, RecentFailure

WIDTH, HEIGHT = 480, 200
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 14, 30
#: The range of the axis, seconds.
LEAST, MOST = 0.01, 86400.0


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """One change, the oldest first.

    :ivar seconds: until the pool served it, or so far
    :ivar kind: ``done``, ``pending`` or ``error``
    """

    seconds: float
    kind: str


def plot_summary(points: Sequence[Point]) -> str:
    """The plot in words."""
    done = [point.seconds for point in points if point.kind == 'done']
    open_ = len(points) - len(done)
    sentences = [f'{len(points)} {"change" if len(points) == 1 else "changes"}, the oldest on the left.']
    if done:
        sentences.append(f'{len(done)} converged: half of them within {span(statistics.median(done))}, all within '
                         f'{span(max(done))}.')
    if open_:
        sentences.append(f'{open_} {"has" if open_ == 1 else "have"} not converged yet.')
    return ' '.join(sentences)


def plot(points: Sequence[Point]) -> Html:
    """A dot for each change; the higher, the longer it took (logarithmic); the table next to it has the same values."""
    top = min(MOST, max([1.0, *(point.seconds for point in points)]))
    tens = range(math.floor(math.log10(LEAST)), math.ceil(math.log10(top)) + 1)
    marks = []
    for power in tens:
        y = _y(10.0 ** power, tens)
        marks.append(el('line', x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_='grid'))
        marks.append(el('text', span(10.0 ** power), x=LEFT - 8, y=y + 4, class_='label end'))
    step = (WIDTH - LEFT - RIGHT) / max(1, len(points))
    dots = [_dot(round(LEFT + step * (index + 0.5), 1), _y(point.seconds, tens), point)
            for index, point in enumerate(points)]
    return el('svg', el('title', 'Convergence times of the last changes', id='plot-title'),
              el('desc', plot_summary(points), id='plot-text'), *marks, *dots,
              el('text', 'older', x=LEFT, y=HEIGHT - 8, class_='label'),
              el('text', 'newer', x=WIDTH - RIGHT, y=HEIGHT - 8, class_='label end'),
              viewBox=f'0 0 {WIDTH} {HEIGHT}', role='img', aria_labelledby='plot-title plot-text')


def _y(seconds: float, tens: range) -> float:
    least, most = tens[0], tens[-1]
    part = (math.log10(min(max(seconds, LEAST), MOST)) - least) / (most - least)
    return round(HEIGHT - BOTTOM - min(1.0, part) * (HEIGHT - TOP - BOTTOM), 1)


def _dot(x: float, y: float, point: Point) -> Html:
    """Kinds differ by shape, not only by colour."""
    if point.kind == 'error':
        return el('path', d=f'M{x - 4} {y - 4}l8 8m0 -8l-8 8', class_='error')
    return el('circle', cx=x, cy=y, r=4, class_=point.kind)


#: More recordsets than this are not counted.
COUNTED = 10000
_AUDIT_NAMES = {AuditKind.SERIALS: 'Serials', AuditKind.CONTENTS: 'Contents',
                AuditKind.SIGNATURES: 'Signatures'}


@dataclasses.dataclass(frozen=True, slots=True)
class PoolState:
    """What the pool's page shows.

    :ivar changes: the newest first
    :ivar audits: the rounds over all domains
    :ivar others: the servers of the other pools, and how many of their zones are in ERROR, by pool
    :ivar in_error: ids and names of zones
    """

    name: str
    reports: Sequence[ServerReport]
    changes: Sequence[RecentChange]
    failures: Sequence[RecentFailure]
    programs: Sequence[ServiceStatus]
    audits: Sequence[Audit] = ()
    others: Mapping[str, tuple[Sequence[ServerReport], int]] = dataclasses.field(default_factory=dict)
    freeze: Freeze | None = None
    in_error: Sequence[tuple[str, str]] = ()


def pool_page(found: PoolState, base: str, now: datetime) -> str:
    """One screen for a pool."""
    labels = {report.server.id: report.server.label for report in found.reports}
    return page(
        f'Pool {found.name}', base, now,
        el('h1', f'Pool {found.name}'),
        el('p', pool_summary(found.reports, len(found.in_error)), class_='summary', id='summary'),
        el('p', f'The pool is frozen{frozen(FREEZE.show(found.freeze))}.', class_='summary bad', id='freeze')
        if found.freeze else None,
        section('pools', 'Other pools', table(
            'pools', 'The state of the servers of the other pools', ('Pool', 'Servers'),
            [(el('a', name, href=f'{base}/status?pool={quote(name, "")}'), pool_summary(*state_))
             for name, state_ in found.others.items()])) if found.others else None,
        section('servers', 'Servers', _servers(found, now)),
        section('failing', 'What fails', el('p', 'Zones in ERROR: ', *(
            join(zone_link(name, domain_id, base), ' ') for domain_id, name in found.in_error))
            if found.in_error else None, table(
            'failing', 'Operations that failed and are tried again, of each server those that are due first',
            ('Zone', 'Server', 'Operation', 'Serial there', 'Wanted', 'Tries', 'Reason', 'Next try'),
            [(zone_link(failure.name, failure.domain_id, base), labels.get(failure.server_id, failure.server_id),
              failure.action.value, number(failure.serial),
              '–' if failure.action is Action.DELETE else str(failure.expected_serial), failure.attempts,
              failure.error or '–',
              until(failure.next_attempt_at, now)) for failure in found.failures],
            numbers=(3, 4, 5), empty='No operation on a server fails.' if found.in_error else 'Nothing fails.')),
        section('changes', 'Last changes', _changes(found.changes, base, now)),
        section('audits', 'Audits', table(
            'audits', 'The audit rounds, each of which checks every zone on every server',
            ('What', 'Round', 'Began', 'Length', 'Zones', 'Asked', 'Not answered', 'Findings', 'Coverage'),
            [line for audit in found.audits for line in _audit(audit, now)], numbers=(4, 5, 6, 7, 8),
            empty='No round has begun yet.')),
        section('programs', 'Programs', table(
            'programs', 'The programs and when each last reported', ('Program', 'Pool', 'Host', 'State', 'Heard'),
            [(program.service_name, program.pool_name, program.hostname, state(program.status),
              f'{age(program.heartbeated_at, now)} ago') for program in found.programs],
            empty='No program has reported yet.')))


def pool_summary(reports: Sequence[ServerReport], in_error: int = 0) -> str:
    """The state of a pool, of whose zones some are in ERROR, in a sentence."""
    active = [report for report in reports if report.server.state is ServerState.ACTIVE]
    if not active:
        return 'No server of the pool is active.'
    silent = [report.server.label for report in reports if report.server.silent_since]
    failing = [report for report in reports if report.failing]
    behind = [report for report in reports if report.waiting]
    what = f'{len(active)} {"server is" if len(active) == 1 else "servers are"} active'
    domains = max(report.domains for report in active)
    of = f'{domains} {"zone" if domains == 1 else "zones"}'
    if silent:
        what += f'; {", ".join(silent)} {"answers" if len(silent) == 1 else "answer"} nobody'
    if failing:
        count = sum(report.failing for report in failing)
        return (f'{what}; {count} {"operation fails" if count == 1 else "operations fail"} on '
                f'{", ".join(report.server.label for report in failing)}.')
    if behind:
        names = ', '.join(report.server.label for report in behind)
        return f'{what}; {names} still {"has" if len(behind) == 1 else "have"} work to do.'
    if in_error:
        return f'{what}; {"a zone is" if in_error == 1 else "some zones are"} in ERROR.'
    return f'{what}.' if silent else f'{what}, and every one has all of {of}.'


def _servers(found: PoolState, now: datetime) -> Html:
    errors = {failure.server_id: failure.error for failure in reversed(found.failures)}
    return table(
        'servers', 'The servers of the pool, with the state and the work of each',
        ('Server', 'State', 'Since', 'Zones', 'To do', 'Failing', 'Oldest due', 'Last error or note'),
        [(report.server.label, _server_state(report), age(report.server.state_since, now), report.domains,
          report.waiting,
          el('span', report.failing, class_='bad' if report.failing else None), _oldest(report.oldest, now),
          errors.get(report.server.id) or report.server.note or '–')
         for report in found.reports if report.server.state is not ServerState.REMOVED], numbers=(3, 4, 5),
        empty='The pool has no servers.')


def _server_state(report: ServerReport) -> Html:
    """Its state, since when it has answered nobody, and *failing* if operations fail; work to do is no failure."""
    silent = report.server.silent_since
    faults = [*([f'silent since {silent:%H:%M:%S}'] if silent else []), *(['failing'] if report.failing else [])]
    return join(state(report.server.state.value), *(join(' ', el('span', fault, class_='state bad'))
                                                    for fault in faults))


def _oldest(due: datetime | None, now: datetime) -> str:
    if due is None:
        return '–'
    return f'{age(due, now)} ago' if due <= now else until(due, now)


def _changes(changes: Sequence[RecentChange], base: str, now: datetime) -> Content:
    if not changes:
        return el('p', 'Nothing was changed yet.')
    points = [Point(_took(change, now), 'done' if change.converged_at is not None else
                    'error' if change.status is Status.ERROR else 'pending') for change in reversed(changes)]
    return join(
        el('figure', plot(points), el('figcaption', plot_summary(points),
                                      ' A full dot has converged, an empty one has not, a cross has failed.')),
        table('changes', 'The last change of each zone, the newest first',
              ('Zone', 'Serial', 'State', 'Changed', 'Converged after'),
              [(zone_link(change.name, change.domain_id, base) if change.status is not Status.DELETED else change.name,
                change.serial, state(change.status.value), moment(change.changed_at),
                span(_took(change, now)) if change.converged_at else f'not yet, since {span(_took(change, now))}')
               for change in changes], numbers=(1,)))


def _audit(audit: Audit, now: datetime) -> Iterator[tuple[Content, ...]]:
    """Rows for its last and its present round, if any."""
    if audit.last is not None and audit.last_started_at is not None:
        yield (_AUDIT_NAMES[audit.kind], 'last', moment(audit.last_started_at), span(audit.last_seconds or 0.0),
               *_counted(audit.last))
    if audit.is_under_way(now):
        yield (_AUDIT_NAMES[audit.kind], 'now', moment(audit.started_at), f'since {age(audit.started_at, now)}',
               *_counted(audit.now))


def _counted(counts: Counts) -> tuple[Content, ...]:
    return (counts.domains, counts.asked, counts.unanswered,
            el('span', counts.findings, class_='bad' if counts.findings else None),
            # Rounded down: 100 % means that nothing was missed.
            f'{math.floor(1000 * counts.coverage) / 10:g}\N{NO-BREAK SPACE}%')


def _took(change: RecentChange, now: datetime) -> float:
    return max(0.0, ((change.converged_at or now) - change.changed_at).total_seconds())


def zone_link(name: str, domain_id: str, base: str) -> Html:
    """A link to the status page of a zone."""
    return el('a', name, href=f'{base}/status/zones/{dashed(domain_id)}')


def zone_page(domain: Domain, explained: Mapping[str, Any], recordsets: int, versions: Sequence[Version], base: str,
              now: datetime) -> str:
    """The page of a zone.

    :param explained: see :func:`designate_pool.api.views.explain.explain`
    :param recordsets: how many it has, :data:`COUNTED` for that or more
    :param versions: the newest, newest first
    """
    servers = explained['servers']
    return page(
        domain.name, base, now,
        el('h1', domain.name, ' ', state(domain.status.value)),
        el('p', explained['summary'], class_='summary', id='summary'),
        el('p', explained['lacking']) if explained['lacking'] else None,
        section('advice', 'What to do', el('ul', *(el('li', sentence) for sentence in explained['advice']))
                if explained['advice'] else el('p', 'Nothing.')),
        section('servers', 'Servers', facts(*((server['name'], server['state_of']) for server in servers)), table(
            'servers', f'The state of {domain.name} on each server',
            ('Server', 'State', 'Operation', 'Outcome', 'Serial there', 'Wanted', 'Tries', 'Next try', 'Last error'),
            [_on_server(server, now) for server in servers], numbers=(4, 5, 6),
            empty='No server has the zone.')),
        section('facts', 'Facts', facts(
            ('Serial', str(domain.serial)), ('Agreed on by the pool', number(domain.reported_serial)),
            ('Due', domain.action.value),
            ('Needed', '–' if explained['needed'] is None
             else f'{explained["needed"]} of {explained["total"]} servers'),
            ('Recordsets', f'{COUNTED} or more' if recordsets >= COUNTED else str(recordsets)),
            ('Pool', domain.pool_name), ('Project', domain.project_id or '–'), ('Id', dashed(domain.id)),
            ('Last request', domain.request_id or '–'))),
        section('versions', 'Versions', table(
            'versions', 'Who changed it last, the newest first',
            ('When', 'Serial', 'By what', 'By whom', 'Records added', 'Records removed'),
            [(moment(version.created_at), version.serial, version.kind.value, str(version.actor) or '–', version.added,
              version.gone) for version in versions], numbers=(1, 4, 5))),
        section('history', 'History', table(
            'history', 'What is known of its past, the newest first', ('When', 'What'), _history(domain, explained))))


def _on_server(each: Mapping[str, Any], now: datetime) -> tuple[Content, ...]:
    begun, at = each['created_at'] is not None, each['next_attempt_at']
    return (each['name'], state(each['state']), each['action'],
            state('DIVERGED' if each['diverged'] else each['status']) if begun else 'not begun', number(each['serial']),
            'gone' if each['action'] == 'DELETE' else str(each['expected_serial']), each['attempts'],
            until(at and read_moment(at), now), each['last_error'] or '–')


def _history(domain: Domain, explained: Mapping[str, Any]) -> list[tuple[Content, ...]]:
    events: list[tuple[datetime, str]] = []
    if domain.created_at:
        events.append((domain.created_at, 'It was created.'))
    if domain.changed_at and domain.changed_at != domain.created_at:
        what = 'Its deletion was requested.' if domain.is_going else f'It got serial {domain.least_serial}.'
        events.append((domain.changed_at, what))
    if domain.changed_at and domain.converged_at:
        took = span((domain.converged_at - domain.changed_at).total_seconds())
        events.append((domain.converged_at, f'The pool agreed on serial {domain.least_serial}, after {took}.'))
    for server in explained['servers']:
        if server['updated_at'] is not None:
            what = f'{server["name"]}: {server["action"]} is {server["status"]}.'
            events.append((read_moment(server['updated_at']), what))
    return [(moment(at), what) for at, what in sorted(events, key=lambda pair: pair[0], reverse=True)]


def fault_page(title: str, why: str, base: str, now: datetime) -> str:
    """A page for an error."""
    return page(title, base, now, el('h1', title), el('p', why, class_='summary', id='summary'), refresh=False)
