"""``designate-pool report``: the answers of every server of a pool, compared with the zone in the database."""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype

from designate_pool.cli.base import ZONE, Argument, Shown, TextCommand, all_columns, positive, seconds
from designate_pool.cli.client import Json
from designate_pool.cli.commands.zone_files import IMPORT_SECONDS
from designate_pool.cli.connection import CliError
from designate_pool.errors import BackendError
from designate_pool.planner import master
from designate_pool.protocol import soa_rdata
from designate_pool.protocol.names_and_rdata import GENERATED, parents, without_case
from designate_pool.protocol.soa_exchange import reply_over_tcp
from designate_pool.protocol.tcp_client import WINDOW, TcpPeer

SAME, COULD_NOT_ASK, DIFFERENT = 0, 1, 2
LIMIT = 1000
TIMEOUT = 3.0
#: Differences that are listed for each server.
SOME = 20


class ReportCommand(TextCommand):
    """Ask every server of a zone's pool over DNS for all records of the zone, and show where answers differ.

    The exit code is 0 when all servers that count answer as the pool has it, 2 when one of them does not, 1 when one of
    them could not be asked.
    """

    arguments = (
        ZONE,
        Argument('--timeout', type=seconds, default=TIMEOUT, metavar='SECONDS',
                 help=f'how long to wait for the answer about the SOA, and then for those to each {WINDOW} questions, '
                      f'which are asked at once; {TIMEOUT:g} if not given'),
        Argument('--limit', type=positive, default=LIMIT, metavar='N',
                 help=f'ask for at most this many RRsets of the zone; {LIMIT} if not given'),
        Argument('--no-serial', action='store_true', help='leave the SOA out of the comparison, for servers that '
                                                          'count their own serials'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        name = zone['name'].lower()  # as the export has it
        servers = self.client.get(f'/v2/zones/{zone["id"]}/servers')['servers']
        if not servers:
            raise CliError(f'The pool of {zone["name"]} has no servers.')
        pairs = self._contents(zone)
        served = questions(name, pairs)
        asked = Asked(name, soa_rdata.serial_in(pairs[f'{name}\tSOA'].split('\t')[1]),
                      served[:parsed_args.limit], not parsed_args.no_serial)
        with concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
            answers = list(pool.map(lambda each: ask(each['host'], each['port'], asked, parsed_args.timeout), servers))
        report = {'zone': zone['name'], 'serial': asked.serial, 'rrsets': len(pairs) - 1,
                  'asked': len(asked.questions), 'below_delegations': len(pairs) - 1 - len(served),
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
        return master.read(answer.content.decode('utf-8'), zone['name'])


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


@dataclasses.dataclass(frozen=True, slots=True)
class DnsQuestion:
    """
    :ivar expected: the TTL and the data as :attr:`designate_pool.protocol.rrset.RRset.packed` has them, with blanks
        and commas between
    :ivar referral: whether the answer is that another server is to be asked (RFC 1034 section 4.3.2); or the child
        zone's own answer, from a server that has the child too
    """

    name: str
    type: str
    expected: str
    referral: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What every server is asked.

    :ivar with_serial: whether another serial is a difference
    """

    zone: str
    serial: int
    questions: Sequence[DnsQuestion]
    with_serial: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    question: DnsQuestion
    answered: str


@dataclasses.dataclass(frozen=True, slots=True)
class ServerAnswers:
    """
    :ivar asked: how many questions it has answered, beside that for the SOA
    :ivar trouble: why not all of them
    """

    serial: int | None
    asked: int
    differences: tuple[Difference, ...] = ()
    trouble: str | None = None


def questions(zone: str, pairs: Mapping[str, str]) -> list[DnsQuestion]:
    """What to ask so that all of a zone is seen, in the order of names, without its SOA.

    What is below a delegation or a DNAME is not answered for by this zone's servers.
    """
    keys = [tuple(key.split('\t')) for key in pairs]
    cuts = {name for name, rtype in keys if rtype == 'NS' and name != zone}
    covers = cuts | {name for name, rtype in keys if rtype == 'DNAME'}
    questions = []
    for name, rtype in sorted(keys):
        if rtype == 'SOA' or rtype in GENERATED or any(above in covers for above in parents(name)) \
                or name in cuts and rtype not in ('NS', 'DS'):
            continue
        questions.append(DnsQuestion(name, rtype, _told(pairs[f'{name}\t{rtype}']), rtype == 'NS' and name in cuts))
    return questions


def ask(host: str, port: int, asked: Asked, timeout: float) -> ServerAnswers:
    """Ask one server over TCP: first for the SOA, and when it answers that for all else, many at once."""
    peer, soa = TcpPeer(host, port), DnsQuestion(asked.zone, 'SOA', f'serial {asked.serial}')
    try:
        said = reply_over_tcp(peer, asked.zone, timeout)
    except BackendError as error:
        return ServerAnswers(None, 0, trouble=str(error).rstrip('.'))
    if said.serial is None:
        # Without the zone there is nothing to be had from it.
        return ServerAnswers(None, 0, (Difference(soa, said.error),))
    is_other = asked.with_serial and said.serial != asked.serial
    differences = [Difference(soa, f'serial {said.serial}')] if is_other else []
    trouble, count = None, 0
    for start in range(0, len(asked.questions), WINDOW):
        questions = {id(query): (query, question) for question in asked.questions[start:start + WINDOW]
                     for query in (dns.message.make_query(question.name, question.type, flags=0),)}
        answers: dict[int, dns.message.Message] = {}
        try:
            answers.update((id(query), answer) for query, answer in peer.ask_each(
                (query for query, _ in questions.values()), timeout))
        except BackendError as error:
            trouble = str(error).rstrip('.')
        answered = {key: _read(answers[key], question) for key, (_, question) in questions.items() if key in answers}
        differences += [Difference(questions[key][1], answer) for key, answer in answered.items()
                        if answer != questions[key][1].expected]
        count += len(answers)
        if trouble is not None:
            remaining = len(asked.questions) - count
            return ServerAnswers(said.serial, count, tuple(differences),
                                 f'it stopped answering ({trouble}), {remaining} questions are not answered')
    return ServerAnswers(said.serial, count, tuple(differences))


def _read(answer: dns.message.Message, question: DnsQuestion) -> str:
    section = answer.authority if question.referral and not answer.answer else answer.answer
    name = dns.name.from_text(question.name)
    rtype = dns.rdatatype.from_text(question.type)
    rrset = answer.get_rrset(section, name, dns.rdataclass.IN, rtype)
    if rrset is not None and section is answer.answer and question.referral and answer.flags & dns.flags.AA:
        # The server has the child zone too, and answers from that (RFC 1034 section 4.3.2, step 2): it cannot be seen
        # what it has in the parent.
        return question.expected
    if rrset is not None and (question.referral or answer.flags & dns.flags.AA):
        data = {without_case(question.type, rdata.to_text()) for rdata in rrset}
        return _told('\t'.join((str(rrset.ttl), *sorted(data))))
    if rrset is not None:
        return 'an answer without authority'
    code = dns.rcode.to_text(answer.rcode())
    return 'nothing of the type' if code == 'NOERROR' else code


def _told(packed: str) -> str:
    ttl, _, data = packed.partition('\t')
    return f'{ttl} {data}'.replace('\t', ', ')
