"""Whether a server, or MiniDNS, answers DNS from here, and whether a server takes the signatures of its section's key.

The question is for the SOA of a random name under ``invalid.`` (RFC 6761 section 6.4).  It is asked, and the answer
judged, as MiniDNS does it when it polls.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
import time

import dns.rcode
import dns.tsig

from designate_pool.model import Endpoint, Finding, Server, TsigKey
from designate_pool.protocol import soa_query, tsig, wire

#: A datagram may get lost; so often the question is sent.
SENDS = 3
_MOST_UDP = 65535


def check_server(server: Server, key_is_tried: bool, seconds: float) -> list[Finding]:
    """What keeps MiniDNS from asking *server*, and the server from asking MiniDNS as far as can be seen from here.

    :param key_is_tried: whether somebody else sees to it that the server takes the key
    :param seconds: how long to wait for the answer
    """
    try:
        host = _address(server)
    except (OSError, UnicodeError) as error:
        return [Finding(f'{server.host} has no address: {_words(error)}',
                        "correct host, or see to this host's name service")]
    found = _check_answer(server, Endpoint(host, server.port), key_is_tried, seconds)
    return [*found, *_check_primaries(server, host)]


def check_minidns(where: Endpoint, seconds: float) -> list[Finding]:
    """A warning when nobody answers DNS at *where*, from which servers are to transfer."""
    try:
        _ask(where, secrets.token_bytes(2) + _question(), seconds)
    except OSError as error:
        return [Finding(f'it does not answer DNS from here: {_words(error)}',
                        "start designate-pool-minidns; where it runs, compare the servers' primaries with listen of "
                        '[service:minidns]', serious=False)]
    return []


def _check_answer(server: Server, where: Endpoint, key_is_tried: bool, seconds: float) -> list[Finding]:
    template = _question()
    message, mac, key = secrets.token_bytes(2) + template, b'', None
    if server.tsig_key is not None:
        key = tsig.key_from(server.tsig_key)
        signer = tsig.Signer(key)
        message = signer.sign(message, int(time.time()))
        mac = signer.mac
    try:
        reply = _ask(where, message, seconds)
    except OSError as error:
        return [Finding(f'it does not answer DNS at {where}: {_words(error)}',
                        'see whether its name server runs and listens there, and whether a firewall lets UDP through')]
    try:
        return _judge(reply, template, server.tsig_key, key, mac, key_is_tried)
    except wire.Malformed:
        return [Finding(f'what answers at {where} is no DNS server', 'correct host or port')]


def _check_primaries(server: Server, host: str) -> list[Finding]:
    own = [str(primary) for primary in server.primaries if ipaddress.ip_address(primary.host).is_loopback]
    if not own or _is_of_this_host(host):
        return []
    return [Finding(f'it cannot transfer from {", ".join(own)}, which to it is itself',
                    'set primaries to an address at which it reaches MiniDNS, and listen of [service:minidns] too')]


def _judge(reply: bytes, template: bytes, key: TsigKey | None, known: dns.tsig.Key | None, mac: bytes,
           key_is_tried: bool) -> list[Finding]:
    """What is wrong with *reply*; that the server has no such zone is right.

    :raises wire.Malformed: when it is no answer to the question
    """
    now = int(time.time())
    said = soa_query.read_soa(reply, template, known, mac, now)
    if said is None:
        raise wire.Malformed
    if key is None or known is None:
        return []
    seal = tsig.last(reply)
    if seal is None:
        rcode = reply[3] & 15
        # Some servers, Knot DNS among them, refuse what they have no zone for before they look at the signature.
        return [] if key_is_tried and rcode == wire.REFUSED else [_unsigned(key, rcode)]
    if seal.error:
        return [_refused(key, seal, now)]
    try:
        tsig.check_reply(reply, known, mac, now)
    except tsig.BadSignature as error:
        return [Finding(f'{error.error} (key {key.name})', _same(key))]
    return []


def _refused(key: TsigKey, seal: tsig.TsigRecord, now: int) -> Finding:
    """What a TSIG error in an answer means (RFC 8945 section 5.2)."""
    if seal.error == tsig.BADKEY:
        return Finding(f'it does not know the key {key.name} with {key.algorithm} (BADKEY)', _same(key))
    if seal.error == tsig.BADSIG:
        return Finding(f'it has another secret for the key {key.name} (BADSIG)', _same(key))
    if seal.error == tsig.BADTIME and len(seal.other) == 6:
        apart = int.from_bytes(seal.other, 'big') - now
        return Finding(f'its clock is {abs(apart)} s {"ahead of" if apart > 0 else "behind"} the one here (BADTIME)',
                       'set both clocks by NTP; signatures allow for a few minutes')
    name = tsig.ERRORS.get(seal.error, str(seal.error))
    return Finding(f'it does not take what is signed with the key {key.name} ({name})', _same(key))


def _unsigned(key: TsigKey, rcode: int) -> Finding:
    word = dns.rcode.to_text(dns.rcode.Rcode.make(rcode))
    if rcode == wire.REFUSED:
        return Finding(f'whether it knows the key {key.name} cannot be told: it answers {word} without a signature',
                       f'if its zones stay in ERROR: {_same(key)}', serious=False)
    return Finding(f'it answers {word} without a signature to what is signed with the key {key.name}',
                   f'{_same(key)}, and compare the clocks')


def _same(key: TsigKey) -> str:
    return f'the server and its section need the same key: name {key.name}, algorithm {key.algorithm}, and the secret'


def _address(server: Server) -> str:
    """The first address of the server's host, which is the one that MiniDNS asks.

    :raises OSError: when there is none
    """
    return str(socket.getaddrinfo(server.host, server.port, type=socket.SOCK_DGRAM)[0][4][0])


def _is_of_this_host(address: str) -> bool:
    with _socket(address) as sock:
        try:
            sock.bind((address, 0))
        except OSError:
            return False
    return True


def _question() -> bytes:
    return soa_query.soa_query(wire.wire_of(f'designate-pool-check-{secrets.token_hex(8)}.invalid.'))


def _ask(where: Endpoint, message: bytes, seconds: float) -> bytes:
    """The reply to *message*, over UDP.

    :raises OSError: when there is none within *seconds*; at once when the host tells that nobody listens there
    """
    end = time.monotonic() + seconds
    with _socket(where.host) as sock:
        sock.connect((where.host, where.port))
        for sends_left in range(SENDS, 0, -1):
            sock.send(message)
            try:
                return _reply(sock, message[:2], time.monotonic() + (end - time.monotonic()) / sends_left)
            except TimeoutError:
                continue
    raise TimeoutError(f'nothing within {seconds:g} s')


def _reply(sock: socket.socket, number: bytes, end: float) -> bytes:
    while (left := end - time.monotonic()) > 0:
        sock.settimeout(left)
        reply = sock.recv(_MOST_UDP)
        if reply[:2] == number:
            return reply
    raise TimeoutError


def _socket(address: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)


def _words(error: Exception) -> str:
    return str(getattr(error, 'strerror', None) or error)
