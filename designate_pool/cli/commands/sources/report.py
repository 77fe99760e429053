"""``designate-pool report``: what every server of the pool answers, beside what the pool holds."""

from __future__ import annotations

import argparse
import concurrent.futures
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from designate_pool.cli import dns_check
from designate_pool.cli.base import Json, TextCommand, seconds
from designate_pool.cli.commands.zones.zone_files import IMPORT_SECONDS
from designate_pool.cli.dns_check import Asked, ServerAnswers
from designate_pool.cli.http.client import CliError
from designate_pool.errors import PoolError
from designate_pool.planner import master

Shown = tuple[Sequence[str], Iterable[Any]]
SAME, COULD_NOT_ASK, DIFFERENT = 0, 1, 2
LIMIT = 1000
TIMEOUT = 3.0
#: Differences that are named for each server unless all are wanted.
SOME = 20


class ReportZone(TextCommand):
    """Ask every server of a zone's pool over DNS for all records of the zone, and show where answers differ.

    The exit code is 0 when all servers that count answer as the pool has it, 2 when one of them does not, 1 when one of
    them could not be asked.
    """

    exit_code = SAME

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('zone', metavar='ZONE', help='name or id; the final dot may be left out')
        parser.add_argument('--timeout', type=seconds, default=TIMEOUT, metavar='SECONDS',
                            help=f'how long to wait for each answer; {TIMEOUT:g} if not given')
        parser.add_argument('--limit', type=_limit, default=LIMIT, metavar='N',
                            help=f'ask for at most this many RRsets of the zone; {LIMIT} if not given')
        parser.add_argument('--no-serial', action='store_true',
                            help='leave the SOA out of the comparison, for servers that count their own serials')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or self.exit_code

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        servers = self.client.get(f'/v2/zones/{zone["id"]}/servers')['servers']
        if not servers:
            raise CliError(f'The pool of {zone["name"]} has no servers.')
        pairs = self._contents(zone)
        questions = dns_check.questions(zone['name'], pairs)
        asked = Asked(zone['name'], dns_check.serial_of(zone['name'], pairs), questions[:parsed_args.limit],
                      not parsed_args.no_serial)
        with concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
            found = list(pool.map(lambda each: dns_check.ask(each['host'], each['port'], asked, parsed_args.timeout),
                                  servers))
        told = {'zone': zone['name'], 'serial': asked.serial, 'rrsets': len(pairs) - 1,
                'asked': len(asked.questions), 'below_delegations': len(pairs) - 1 - len(questions),
                'servers': [_server(server, each) for server, each in zip(servers, found, strict=True)]}
        counting = [each for server, each in zip(servers, found, strict=True) if server['counts']]
        self.exit_code = COULD_NOT_ASK if any(each.trouble for each in counting) \
            else DIFFERENT if any(each.differences for each in counting) else SAME
        return tuple(told), tuple(told.values())

    def text(self, found: Json) -> str:
        return '\n'.join(_lines(found)) + '\n'

    def _contents(self, zone: Json) -> dict[str, str]:
        """The packed pairs of the zone, as the pool has it."""
        answer = self.client.send('GET', f'/v2/zones/tasks/exports/{zone["id"]}/export', IMPORT_SECONDS)
        try:
            return master.read(answer.content.decode('utf-8'), zone['name'])
        except PoolError as error:
            raise CliError(str(error)) from error


def _limit(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'{text!r} is no whole number from 1')
    return int(text)


def _server(server: Json, found: ServerAnswers) -> Json:
    return {'name': server['name'], 'state': server['state'], 'counts': server['counts'], 'serial': found.serial,
            'asked': found.asked, 'differing': len(found.differences), 'error': found.trouble,
            'differences': [{'name': each.question.name, 'type': each.question.type, 'expected': each.question.expected,
                             'answered': each.answered} for each in found.differences]}


def _lines(found: Json) -> Iterator[str]:
    yield f'{found["zone"]} is at serial {found["serial"]} in the pool and has {found["rrsets"]} RRsets beside its SOA.'
    if found['below_delegations']:
        yield f'Not asked for: {found["below_delegations"]} below delegations, which servers do not answer for.'
    cut = found['rrsets'] - found['below_delegations'] - found['asked']
    if cut > 0:
        yield f'Not asked for: {cut} more; --limit asks for more than {found["asked"]}.'
    for server in found['servers']:
        yield ''
        state = '' if server['state'] == 'active' else f' ({server["state"]})'
        yield f'{server["name"]}{state}: {_verdict(server)}'
        for each in server['differences'][:SOME]:
            yield f'  {each["name"]} {each["type"]}'
            yield f'    - {each["expected"]}'
            yield f'    + {each["answered"]}'
        if len(server['differences']) > SOME:
            yield f'  and {len(server["differences"]) - SOME} more; -f json has them all.'


def _verdict(server: Json) -> str:
    serial = 'no serial' if server['serial'] is None else f'serial {server["serial"]}'
    said = f'{serial}, {server["asked"]} questions asked, {server["differing"]} answers differ'
    return f'{said}; {server["error"]}' if server['error'] else said
