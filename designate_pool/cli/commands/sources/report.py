"""``designate-pool report``: the answers of every server of a pool, compared with the zone in the database."""

from __future__ import annotations

import argparse
import concurrent.futures
from collections.abc import Iterator

from designate_pool.cli import dns_check
from designate_pool.cli.args.common import add_zone, positive
from designate_pool.cli.base import Shown, TextCommand, all_columns, seconds
from designate_pool.cli.commands.zones.zone_files import IMPORT_SECONDS
from designate_pool.cli.dns_check import Asked, ServerAnswers
from designate_pool.cli.http.errors import CliError, Json
from designate_pool.errors import PoolError
from designate_pool.planner import master

SAME, COULD_NOT_ASK, DIFFERENT = 0, 1, 2
LIMIT = 1000
TIMEOUT = 3.0
#: Differences that are listed for each server.
SOME = 20


class ReportZone(TextCommand):
    """Ask every server of a zone's pool over DNS for all records of the zone, and show where answers differ.

    The exit code is 0 when all servers that count answer as the pool has it, 2 when one of them does not, 1 when one of
    them could not be asked.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser)
        parser.add_argument('--timeout', type=seconds, default=TIMEOUT, metavar='SECONDS',
                            help=f'how long to wait for each answer; {TIMEOUT:g} if not given')
        parser.add_argument('--limit', type=positive, default=LIMIT, metavar='N',
                            help=f'ask for at most this many RRsets of the zone; {LIMIT} if not given')
        parser.add_argument('--no-serial', action='store_true',
                            help='leave the SOA out of the comparison, for servers that count their own serials')

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
            answers = list(pool.map(lambda each: dns_check.ask(each['host'], each['port'], asked, parsed_args.timeout),
                                    servers))
        report = {'zone': zone['name'], 'serial': asked.serial, 'rrsets': len(pairs) - 1,
                  'asked': len(asked.questions), 'below_delegations': len(pairs) - 1 - len(questions),
                  'servers': [_server(server, answer) for server, answer in zip(servers, answers, strict=True)]}
        counting = [answer for server, answer in zip(servers, answers, strict=True) if server['counts']]
        self.exit_code = COULD_NOT_ASK if any(answer.trouble for answer in counting) \
            else DIFFERENT if any(answer.differences for answer in counting) else SAME
        return all_columns(report)

    def text(self, found: Json) -> str:
        return '\n'.join(_lines(found)) + '\n'

    def _contents(self, zone: Json) -> dict[str, str]:
        """The packed pairs of the zone, as the database has it."""
        answer = self.client.send('GET', f'/v2/zones/tasks/exports/{zone["id"]}/export', IMPORT_SECONDS)
        try:
            return master.read(answer.content.decode('utf-8'), zone['name'])
        except PoolError as error:
            raise CliError(str(error)) from error


def _server(server: Json, found: ServerAnswers) -> Json:
    return {'name': server['name'], 'state': server['state'], 'counts': server['counts'], 'serial': found.serial,
            'asked': found.asked, 'differing': len(found.differences), 'error': found.trouble,
            'differences': [{'name': difference.question.name, 'type': difference.question.type,
                             'expected': difference.question.expected, 'answered': difference.answered}
                            for difference in found.differences]}


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
        for difference in server['differences'][:SOME]:
            yield f'  {difference["name"]} {difference["type"]}'
            yield f'    - {difference["expected"]}'
            yield f'    + {difference["answered"]}'
        if len(server['differences']) > SOME:
            yield f'  and {len(server["differences"]) - SOME} more; -f json has them all.'


def _verdict(server: Json) -> str:
    serial = 'no serial' if server['serial'] is None else f'serial {server["serial"]}'
    said = f'{serial}, {server["asked"]} questions asked, {server["differing"]} answers differ'
    return f'{said}; {server["error"]}' if server['error'] else said
