"""A zone that is signed and changed while servers and programs die: resolvers that ask each make all the time find no
answer that is not valid.

``python -m tests.fixtures.always_valid`` is the long form.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import pathlib
from collections.abc import Callable, Mapping

import dns.dnssec
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rrset
from cryptography.hazmat.primitives.asymmetric import ec
from dns.rdatatype import DNSKEY, A, RdataType

from designate_pool.model import Endpoint
from testing.processes import free_port, wait_until
from tests.fixtures.always_valid import AlwaysValid, ask_delv
from tests.fixtures.answering import Answers, Scripted

ZONE = 'valid.example.com.'
#: What becomes of an answer; whether it was asked over TCP.
Fault = Callable[[dns.message.Message, bool], Answers]


def test_nothing_invalid_is_served_while_keys_are_rolled_and_everything_dies(tmp_path: pathlib.Path) -> None:
    with AlwaysValid(tmp_path, 1, pause=0.1).running() as zone:
        zone.dnssec('POST', policy='default')
        zone.wait_for('secure')
        zone.live(30, kills=2, zsk_seconds=5, stopped=4)
    assert zone.told['kills'] == 2 and zone.told['wiped'] == zone.told['stopped'] == 4, zone.told
    assert zone.told['changes 202'] > 20 and zone.told['ZSK rolled'] > 1 and zone.told['KSK rolled'], zone.told


def test_a_zone_of_10000_names_is_signed_and_unsigned_while_it_changes(tmp_path: pathlib.Path) -> None:
    with AlwaysValid(tmp_path, 2, more=10_000, pause=0.2).running() as zone:
        with zone.without('nsd'):
            zone.dnssec('POST', policy='default')
            zone.wait_for('signed', changing=True)
            for _ in range(5):
                zone.change()
                zone.pool.stack.wait_for(zone.zone)
            assert zone.state() == 'signed' and 'nsd' in str(zone.dnssec('GET', status=200)['keys'])
        zone.wait_for('secure', changing=True)
        zone.verified()
        wait_until(zone.watch.has_asked_everyone, 'everyone was asked while it is secure')
        zone.dnssec('DELETE')
        zone.wait_for(None, changing=True)
        zone.same()


def _coded(rcode: dns.rcode.Rcode) -> Fault:
    def fault(answer: dns.message.Message, over_tcp: bool) -> Answers:
        answer.answer = []
        answer.set_rcode(rcode)
        yield answer

    return fault


def _nothing(answer: dns.message.Message, over_tcp: bool) -> Answers:
    return ()


def _closed(answer: dns.message.Message, over_tcp: bool) -> Answers:
    """It is too long for UDP, and TCP is closed without an answer."""
    if not over_tcp:
        answer.answer = []
        answer.flags |= dns.flags.TC
        yield answer


def _with(change: Callable[[dns.rdata.Rdata], dns.rdata.Rdata | None]) -> Fault:
    """The signature is another one, or missing."""
    def fault(answer: dns.message.Message, over_tcp: bool) -> Answers:
        rrset, signatures = answer.answer
        changed = change(signatures[0])
        answer.answer = [rrset] if changed is None else [rrset, dns.rrset.from_rdata(rrset.name, 300, changed)]
        yield answer

    return fault


#: What may come of a query, and what is to be told of it.
FAULTS: Mapping[str, Mapping[str, Fault]] = {
    'absent': {'FORMERR': _coded(dns.rcode.FORMERR), 'SERVFAIL': _coded(dns.rcode.SERVFAIL),
               'REFUSED': _coded(dns.rcode.REFUSED), 'NOTAUTH': _coded(dns.rcode.NOTAUTH),
               'silence': _nothing, 'closed': _closed},
    'bogus': {'empty': _coded(dns.rcode.NOERROR), 'NXDOMAIN': _coded(dns.rcode.NXDOMAIN),
              'unsigned': _with(lambda signature: None),
              'flipped': _with(lambda signature: signature.replace(signature=bytes(64))),
              'expired': _with(lambda signature: signature.replace(expiration=1))}}


def test_delv_tells_an_answer_that_is_not_valid_from_none(tmp_path: pathlib.Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    key = dns.dnssec.make_dnskey(private.public_key(), 'ECDSAP256SHA256', flags=257)
    apex = dns.name.from_text(ZONE)
    rrsets = {A: dns.rrset.from_text(f'www.{ZONE}', 300, 'IN', 'A', '192.0.2.1'),
              DNSKEY: dns.rrset.from_rdata(apex, 300, key)}
    signatures = {
        rtype: dns.rrset.from_rdata(rrset.name, 300, dns.dnssec.sign(rrset, private, apex, key, lifetime=3600))
        for rtype, rrset in rrsets.items()}
    ds = dns.dnssec.make_ds(apex, key, 'SHA256')

    def told(fault: Fault | None, faulty: RdataType = A, digest: bytes = ds.digest) -> str:
        def script(query: dns.message.Message, over_tcp: bool) -> Answers:
            answer, rtype = dns.message.make_response(query), query.question[0].rdtype
            answer.flags |= dns.flags.AA
            if rtype in rrsets:
                answer.answer = [rrsets[rtype], signatures[rtype]]
            return fault(answer, over_tcp) if fault and rtype == faulty else [answer]

        with contextlib.closing(Scripted(script)) as server:
            return asked(server.port, digest)

    def asked(port: int, digest: bytes = ds.digest) -> str:
        file = tmp_path / str(port)
        file.write_text(f'trust-anchors {{{ZONE} static-ds {ds.key_tag} 13 2 "{digest.hex()}";}};')
        return '{}: {}'.format(*ask_delv(Endpoint('127.0.0.1', port), file, ZONE, f'www.{ZONE}'))

    assert told(None).startswith('secure')
    assert told(None, digest=bytes(32)).startswith('bogus')
    assert asked(free_port()).startswith('absent')
    cases = [(result, name, rtype) for result, faults in FAULTS.items() for name in faults for rtype in rrsets]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda case: told(FAULTS[case[0]][case[1]], case[2]), cases)
        wrong = [(case, answer) for case, answer in zip(cases, answers) if not answer.startswith(case[0])]
    assert not wrong
