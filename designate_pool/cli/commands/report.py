"""``designate-pool report``: the answers of every server of a pool, compared with the zone in the database."""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from designate_pool.cli.base import ZONE, Argument, Shown, TextCommand, all_columns, positive, seconds
from designate_pool.cli.client import Json
from designate_pool.cli.commands.zone_files import IMPORT_SECONDS
from designate_pool.cli.connection import CliError
from designate_pool.model import Answer
from designate_pool.planner import master
from designate_pool.protocol import soa_rdata, wire
from designate_pool.protocol.names_and_rdata import GENERATED, parents, without_case
from designate_pool.protocol.soa_query import SoaReply, read_reply, soa_query

SAME, COULD_NOT_ASK, DIFFERENT = 0, 1, 2
LIMIT = 1000
TIMEOUT = 3.0
#: Differences that are listed for each server.
SOME = 20
#: Questions that are under way to one server at once; when it answers none of them, it is not asked any more.
IN_FLIGHT = 32
#: A question is asked so often before it counts as not answered.
TRIES = 2
PAYLOAD = 1232
#: Instead of an answer, and what is expected where nothing is there.
NO_ANSWER = 'no answer'


class ReportCommand(TextCommand):
    """Ask every server of a zone's pool over DNS for all records of the zone, and show where answers differ.

    The exit code is 0 when all servers that count answer as the pool has it, 2 when one of them does not, 1 when one of
    them could not be asked.
    """

    arguments = (
        ZONE,
        Argument('--timeout', type=seconds, default=TIMEOUT, metavar='SECONDS',
                 help=f'how long to wait for each answer; {TIMEOUT:g} if not given'),
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
    :ivar asked: how many questions it was asked, beside that for the SOA
    :ivar trouble: why not all of them were asked
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
    """Ask one server: first for the SOA, and when it answers that for all else, many at once."""
    soa = DnsQuestion(asked.zone, 'SOA', f'serial {asked.serial}')
    try:
        answer = _exchange(host, port, soa, timeout)
    except TimeoutError:
        return ServerAnswers(None, 0, trouble=f'it did not answer within {TRIES} times {timeout:g} s')
    except OSError as error:
        return ServerAnswers(None, 0, trouble=f'it could not be asked ({error.strerror or error})')
    said = SoaReply(Answer.BAD, error=answer) if isinstance(answer, str) else \
        read_reply(answer.wire or b'', soa_query(wire.encode(asked.zone)))
    if said is None or said.serial is None:
        # Without the zone there is nothing to be had from it.
        return ServerAnswers(None, 0, (Difference(soa, NO_ANSWER if said is None else said.error),))
    is_other = asked.with_serial and said.serial != asked.serial
    differences = [Difference(soa, f'serial {said.serial}')] if is_other else []
    answers: list[str] = []
    with concurrent.futures.ThreadPoolExecutor(IN_FLIGHT) as pool:
        for start in range(0, len(asked.questions), IN_FLIGHT):
            batch = list(pool.map(lambda question: _answer(host, port, question, timeout),
                                  asked.questions[start:start + IN_FLIGHT]))
            answers += batch
            if all(answer.startswith(NO_ANSWER) for answer in batch):  # it is not waited for again and again
                break
    differences += [Difference(question, answer) for question, answer in zip(asked.questions, answers)
                    if answer != question.expected]
    remaining = len(asked.questions) - len(answers)
    return ServerAnswers(said.serial, len(answers), tuple(differences),
                         f'it stopped answering, {remaining} were not asked' if remaining else None)


def _answer(host: str, port: int, question: DnsQuestion, timeout: float) -> str:
    """The RRset that was asked for in the form of :attr:`DnsQuestion.expected`, or in words why there is none."""
    try:
        answer = _exchange(host, port, question, timeout)
    except TimeoutError:
        return NO_ANSWER
    except OSError as error:
        return f'{NO_ANSWER} ({error.strerror or error})'
    return answer if isinstance(answer, str) else _read(answer, question)


def _exchange(host: str, port: int, question: DnsQuestion, timeout: float) -> dns.message.Message | str:
    """The answer, or in words why there is none; TimeoutError, or OSError when it cannot be reached."""
    query = dns.message.make_query(dns.name.from_text(question.name), question.type, use_edns=0, payload=PAYLOAD)
    query.flags &= ~dns.flags.RD
    for _ in range(TRIES):
        try:
            answer, _ = dns.query.udp_with_fallback(query, host, timeout, port, ignore_unexpected=True)
        except dns.exception.Timeout:
            continue
        except dns.exception.DNSException as error:
            return f'{type(error).__name__}: {error}'
        return answer
    raise TimeoutError


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
