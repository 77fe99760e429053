"""Whether a server, or MiniDNS, answers DNS from here, and whether a server takes the signatures of its section's key.

The question is for the SOA of a random name under ``invalid.`` (RFC 6761 section 6.4).  The answer is judged as MiniDNS
does it when it polls.
"""

from __future__ import annotations

import ipaddress
import socket

from designate_pool.backends.base import probe_domain
from designate_pool.model import Answer, Endpoint, Finding, Reason, Server, TsigKey
from designate_pool.protocol import soa_exchange, tsig
from designate_pool.protocol.soa_query import SoaReply


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
    findings = _check_answer(server.tsig_key, Endpoint(host, server.port), key_is_tried, seconds)
    for endpoint in server.verify:
        findings += _check_answer(None, endpoint, key_is_tried, seconds)
    return [*findings, *_check_primaries(server, host)]


def check_minidns(where: Endpoint, seconds: float) -> list[Finding]:
    """A warning if nothing answers DNS at *where*, a primary of servers."""
    try:
        _ask(where, None, seconds)
    except OSError as error:
        return [Finding(f'it does not answer DNS from here: {_words(error)}',
                        "start designate-pool-minidns; where it runs, compare the servers' primaries with listen of "
                        '[service:minidns]', serious=False)]
    return []


def _check_answer(key: TsigKey | None, where: Endpoint, key_is_tried: bool, seconds: float) -> list[Finding]:
    """Whether it answers, and takes the key; that it has no such zone is right."""
    try:
        said = _ask(where, key, seconds)
    except OSError as error:
        return [Finding(f'it does not answer DNS at {where}: {_words(error)}',
                        'see whether its name server runs and listens there, and whether a firewall lets UDP through')]
    if key is None or not said.doubtful:
        return []
    if said.answer is Answer.NO_ZONE:
        # Some servers, Knot DNS among them, refuse what they have no zone for before they look at the signature.
        return [] if key_is_tried else [
            Finding(f'whether it knows the key {key.name} cannot be told: it answers REFUSED without a signature',
                    f'if its zones stay in ERROR: {_same(key)}', serious=False)]
    if said.reason is Reason.BAD_TIME:
        return [Finding(said.error, 'set both clocks by NTP; signatures allow for a few minutes')]
    clocks = '' if said.reason is Reason.BAD_KEY else ', and compare the clocks'
    return [Finding(said.error, _same(key) + clocks)]


def _check_primaries(server: Server, host: str) -> list[Finding]:
    own = [str(primary) for primary in server.primaries if ipaddress.ip_address(primary.host).is_loopback]
    if not own or _is_of_this_host(host):
        return []
    return [Finding(f'it cannot transfer from {", ".join(own)}, which is its own loopback',
                    'set primaries to an address at which it reaches MiniDNS, and listen of [service:minidns] too')]


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


def _ask(where: Endpoint, key: TsigKey | None, seconds: float) -> SoaReply:
    """
    :raises OSError: when there is no answer within *seconds*; at once when the host tells that nobody listens there
    """
    return soa_exchange.ask_one(where.host, where.port, None if key is None else tsig.key_from(key),
                                probe_domain().name, seconds)


def _socket(address: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)


def _words(error: Exception) -> str:
    return str(getattr(error, 'strerror', None) or error)
