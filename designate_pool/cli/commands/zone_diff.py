"""``designate-pool zone diff``: what differs between two versions of a zone."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping

from designate_pool.cli import terminal
from designate_pool.cli.base import ZONE, ApiCommand, Argument
from designate_pool.cli.client import Json, version_path
from designate_pool.cli.commands.plans import of_changes
from designate_pool.planner.zone.changes import Change, ordered, with_replaces
from designate_pool.protocol.rrset import RRset

#: Characters of the updates of one message, which may have 65535 octets.
_MESSAGE = 16_000


class ZoneDiff(ApiCommand):
    """Show what differs between two versions of a zone: what the second has in place of the first.

    Versions are named by serials, or by times: 2030-01-31T12:00 (UTC) or 2h (ago).
    """

    arguments = (
        ZONE,
        Argument('first', metavar='SERIAL|TIME', help='the first version'),
        Argument('second', metavar='SERIAL|TIME', nargs='?', default='0s', help='the second one; the present if not '
                                                                                'given'),
        Argument('--as', dest='form', choices=('records', 'plan', 'nsupdate'), default='records',
                 help='the records that were removed and added (the default), recordsets as in a plan, or commands for '
                      'nsupdate that lead a server from the first version to the second'))

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        path = version_path(self.client.any_zone_id(parsed_args.zone), parsed_args.first)
        difference = self.client.get(version_path(f'{path}/diff', parsed_args.second))
        self.app.stdout.writelines(f'{terminal.sanitized(line)}\n' for line in FORMS[parsed_args.form](
            [Change(*(tuple(_rrset(change, side)) for side in ('former_', ''))) for change in difference['changes']]))


def _rrset(change: Json, side: str) -> Iterator[RRset]:
    if change[f'{side}records']:
        yield RRset(change['name'], change['type'], change[f'{side}ttl'], tuple(change[f'{side}records']))


def _as_records(changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        former, new = (list(map(' '.join, _records(side))) for side in (change.existing, change.new))
        yield from (f'- {line}' for line in former if line not in new)
        yield from (f'+ {line}' for line in new if line not in former)


def _as_plan(changes: Iterable[Change]) -> Iterator[str]:
    return of_changes(_in_order(change for change in changes if change.record.type != 'SOA'))


def _as_nsupdate(changes: Iterable[Change]) -> Iterator[str]:
    """In the order in which no server leaves any out: a CNAME comes alone, and the last NS of the zone stays."""
    soas, others = ([change for change in changes if (change.record.type == 'SOA') is is_soa]
                    for is_soa in (True, False))
    zone, size = ''.join(change.name for change in soas), 0
    if zone:
        yield f'zone {zone}'
    for change in [*soas, *_in_order(others)]:
        former, new = list(_records(change.existing)), list(_records(change.new))
        kept = {(name, rtype, data) for name, _, rtype, data in new}
        deletions = [f'update delete {name} {rtype} {data}' for name, _, rtype, data in former
                     if (name, rtype, data) not in kept and rtype != 'SOA']
        additions = [f'update add {" ".join(record)}' for record in new if record not in former]
        for line in [*additions, *deletions] if change.kind == 'Update' else [*deletions, *additions]:
            yield line
            size += len(line)
            if size > _MESSAGE:
                yield from ('send', f'zone {zone}')
                size = 0
    if zone:
        yield 'send'


def _in_order(changes: Iterable[Change]) -> list[Change]:
    return ordered(with_replaces(list(changes)))


def _records(rrsets: Iterable[RRset]) -> Iterator[tuple[str, str, str, str]]:
    for rrset in rrsets:
        yield from ((rrset.name, str(rrset.ttl), rrset.type, data) for data in rrset.rdatas)


FORMS: Mapping[str, Callable[[list[Change]], Iterable[str]]] = {
    'records': _as_records, 'plan': _as_plan, 'nsupdate': _as_nsupdate}
