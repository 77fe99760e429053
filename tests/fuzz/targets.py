"""What reads input from outside: one function for each, which raises for every outcome that is not allowed.

A target lets the errors pass that the reader's docstring names, and checks what can be checked of a result: against
dnspython where it reads the same, against the reader's own inverse where there is one.
"""

from __future__ import annotations

import atexit
import functools
import json
import pathlib
import socket
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype

from designate_pool.backends.bind9 import driver, named_conf, rndc
from designate_pool.backends.knot.control_protocol import KnotControl
from designate_pool.backends.nsd import control_protocol
from designate_pool.central import zonefile_parser
from designate_pool.central.validation import names_and_rdata, requests
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BadInput, InvalidField, SourceError, ZoneError
from designate_pool.minidns.acl import Refusal
from designate_pool.minidns.server import responder
from designate_pool.minidns.server.responder import Query, Transfer
from designate_pool.model import Answer
from designate_pool.nameserver.faults import Faults
from designate_pool.nameserver.server import Responder as ServerResponder
from designate_pool.nameserver.zones import ZoneTable
from designate_pool.planner.sources import axfr as axfr_source, server_config as reader
from designate_pool.planner.targets.yaml_target import YamlProvider
from designate_pool.planner.zone.zone import Zone
from designate_pool.powerdns import PdnsServer
from designate_pool.protocol import soa_query, tsig, wire, zonemd
from designate_pool.protocol.axfr_inbound import AxfrInbound
from designate_pool.rpc import serializer
from tests.unit.minidns.values import ACL, HEAD, KEY, NOW

Target = Callable[[bytes], None]
TARGETS: dict[str, Target] = {}

_TEMPLATE = soa_query.soa_query(wire.wire_of('example.com.'))
_NOTIFY = soa_query.soa_query(wire.wire_of('example.com.'), wire.NOTIFY)


def target(function: Target) -> Target:
    TARGETS[function.__name__] = function
    return function


def split(octets: bytes) -> Iterator[bytes]:
    """Pieces of *octets*, each with its length before it, as messages over TCP have."""
    while len(octets) >= 2:
        length = int.from_bytes(octets[:2], 'big')
        yield octets[2:2 + length]
        octets = octets[2 + length:]


@target
def minidns_query(octets: bytes) -> None:
    """A query of a server of the pool, with a key or without, or of a stranger; the first octet chooses."""
    address = ('192.0.2.1', '192.0.2.2', '203.0.113.9')[octets[0] % 3] if octets else '192.0.2.1'
    message = octets[1:]
    read = responder.read(ACL, {}, message, address, bool(octets) and octets[0] > 127, NOW)
    if isinstance(read, Refusal):
        reply = read.answer
    elif isinstance(read, Query):
        reply = responder.answer(read, HEAD, NOW)
    else:
        reply = read
    if reply is None or isinstance(reply, Transfer):
        return
    assert reply[:2] == message[:2] and reply[2] & 0x80, reply
    assert tsig.find(reply) is not None or dns.message.from_wire(reply, ignore_trailing=False)


@target
def soa_reply(octets: bytes) -> None:
    """What comes back to a poll, from a server with a key or without."""
    if octets and octets[0] & 1:
        soa_query.read_reply(octets[1:], _TEMPLATE, tsig.key_from(KEY), b'the mac of the query', NOW)
    message = octets[1:]
    said = soa_query.read_reply(message, _TEMPLATE)
    if said is None or said.answer is not Answer.SERIAL:
        return
    try:
        parsed = dns.message.from_wire(message, ignore_trailing=True)
    except (dns.exception.DNSException, ValueError):
        return  # dnspython looks into records that are not the answer
    serials = {rdata.serial for rrset in parsed.answer if rrset.rdtype == dns.rdatatype.SOA for rdata in rrset}
    assert said.serial in serials, (said, serials)


@target
def notify_reply(octets: bytes) -> None:
    """What comes back to a NOTIFY."""
    key = tsig.key_from(KEY) if octets and octets[0] & 1 else None
    soa_query.read_reply(octets[1:], _NOTIFY, key, b'the mac of the query', NOW)


@target
def nameserver_query(octets: bytes) -> None:
    """A query at the project's own name server."""
    for reply in _name_server().respond(octets[1:], '192.0.2.1', bool(octets) and octets[0] > 127).messages:
        assert reply[:2] == octets[1:3] and reply[2] & 0x80


@functools.cache
def _name_server() -> ServerResponder:
    return ServerResponder(ZoneTable(None, (KEY,)), Faults(), lambda zone, hint: None)


@target
def axfr(octets: bytes) -> None:
    """The messages of a transfer, to those who compare zones and to those who want text."""
    query = dns.message.make_query('example.com.', dns.rdatatype.AXFR, flags=0, id=4711)
    digested, pairs = zonemd.DigestedZone(query.question[0].name.to_wire() or b''), axfr_source._Pairs(frozenset())

    def compare(owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int,
                known: dict[int, bytes]) -> None:
        digested.add(owner, rtype, ttl, zonemd.canonical(rtype, message, start, end, known))

    for add in (compare, pairs.add):
        incoming = AxfrInbound(query, add)
        try:
            for message in split(octets):
                if incoming.ended or incoming.feed(message) is not None:
                    break
        except BackendError:
            pass
    list(digested.pieces())
    pairs.packed()


@target
def zone_file(octets: bytes) -> None:
    """A zone file that is imported."""
    text = octets.decode('utf-8', 'replace')
    try:
        domain, contents = zonefile_parser.parse(text)
    except BadInput:
        return
    assert domain.name.endswith('.')
    for recordset in contents:
        assert recordset.rdatas, recordset


@target
def rdata(octets: bytes) -> None:
    """A record's type and data as users write them, which come back unchanged once they were taken."""
    rtype, _, text = octets.decode('utf-8', 'replace').partition(' ')
    try:
        rtype = names_and_rdata.record_type('type', rtype)
        found, = names_and_rdata.rdatas('records', rtype, [text])
    except BadInput:
        return
    assert names_and_rdata.rdatas('records', rtype, [found.text]) == (found,)


@target
def request(octets: bytes) -> None:
    """The arguments of Central's methods."""
    given = _json(octets)
    for check in (requests.new_domain, requests.domain_values, requests.recordsets, requests.changes):
        try:
            check(given)
        except BadInput:
            pass


@target
def rpc_payload(octets: bytes) -> None:
    """A message of another service, of whatever version; what can be read can be sent on."""
    try:
        value = serializer.unpack(_json(octets))
    except InvalidField:
        return
    serializer.pack(value)


@target
def http_body(octets: bytes) -> None:
    """A request's body; the first octet chooses method, address and media type."""
    from tests.unit.api.http import test_bad_input as http
    if not octets:
        return
    path = http.PATHS[octets[0] % len(http.PATHS)]
    method = ('POST', 'PUT', 'PATCH', 'DELETE')[octets[0] // 64]
    kind = 'text/dns' if path.endswith('imports') and octets[0] & 16 else 'application/json'
    http.assert_answered(_send()(method, path, body=octets[1:], headers={'Content-Type': kind}))


@functools.cache
def _send() -> Callable[..., Any]:
    """The sender of the tests of bad input, on a database that goes with this process."""
    from tests.unit.api.http import test_bad_input as http
    folder = tempfile.TemporaryDirectory(prefix='designate-pool-fuzz-')
    senders = http.sender(pathlib.Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(senders.close)
    return next(senders)


@target
def rndc_answer(octets: bytes) -> None:
    """What named says on its control channel; a table that can be read is read again as it was written."""
    try:
        table = rndc.unpack(octets)
    except ValueError:
        return
    assert rndc.unpack(rndc.pack(table)) == table


@target
def bind_statistics(octets: bytes) -> None:
    """What named's statistics channel says, in pieces whose size the first octet chooses."""
    text, size = octets[1:], octets[0] + 1 if octets else 1
    pieces = (text[start:start + size] for start in range(0, len(text), size))
    try:
        list(driver._zones(pieces, 'inside'))
    except (*driver.MALFORMED, BackendError):
        pass


@target
def bind_zone(octets: bytes) -> None:
    """How named shows a zone's configuration."""
    try:
        named_conf.zone_type(named_conf.read_zone(octets.decode('utf-8', 'replace')))
    except BackendError:
        pass


@target
def server_config(octets: bytes) -> None:
    """A named.conf or nsd.conf whose zones are taken over, or the file of a TSIG key."""
    path = _folder() / 'server.conf'
    path.write_bytes(octets)
    for read in (reader.zone_files, reader.tsig_key):
        try:
            read(path)
        except (SourceError, InvalidField):
            pass


@target
def nsd_answer(octets: bytes) -> None:
    """NSD's list of zones."""
    try:
        for each in control_protocol.statuses(octets.split(b'\n')):
            assert each.name.endswith('.')
    except BackendError:
        pass


@target
def knot_answer(octets: bytes) -> None:
    """What knotd says on its control socket."""
    ours, knots = socket.socketpair()
    with ours, knots:
        knots.sendall(octets[:1 << 15])
        knots.close()
        control = KnotControl.__new__(KnotControl)
        control._socket, control._received, control._at = ours, b'', 0
        try:
            list(control._answer(Deadline(5.0)))
        except (BackendError, ConnectionError):
            pass


@target
def pdns_answer(octets: bytes) -> None:
    """What PowerDNS's HTTP API answers."""
    try:
        PdnsServer('http://192.0.2.1:8081', 'key')._parsed(octets, 'GET')
    except BackendError:
        pass


@target
def yaml_zone(octets: bytes) -> None:
    """A zone in YAML, as octoDNS has it."""
    folder = _folder()
    (folder / 'example.com.yaml').write_bytes(octets)
    zone = Zone('example.com.')
    try:
        YamlProvider('config', str(folder)).populate(zone)
    except (SourceError, ZoneError):
        pass


@functools.cache
def _folder() -> pathlib.Path:
    return pathlib.Path(tempfile.mkdtemp(prefix='fuzz-'))


def _json(octets: bytes) -> Any:
    try:
        return json.loads(octets)
    except (ValueError, RecursionError):
        return None
