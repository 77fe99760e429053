"""The name server as a whole, its control socket, and DNS over UDP and TCP on one endpoint.

There is a thread for each message over UDP, up to a limit, and for each TCP connection.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hmac
import ipaddress
import json
import logging
import pathlib
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import dns.tsig

import designate_pool
from designate_pool.errors import BadInput, InvalidField, PoolError
from designate_pool.model import Endpoint, TsigKey
from designate_pool.nameserver.faults import TRANSFER_FAULTS, Fault, Faults
from designate_pool.nameserver.refresher import Refresher
from designate_pool.nameserver.zones import HeldZone, Reply, ZoneContents, ZoneTable, text_of
from designate_pool.protocol import tsig
from designate_pool.protocol.wire import header_only

LOG = logging.getLogger(__name__)
UDP_SIZE = 1232
#: Approximate octets of a message of a transfer.
MESSAGE_OCTETS = 16000


@dataclasses.dataclass
class Response:
    """The messages of a reply, in order (none for no reply), and the seconds to wait before the first."""

    messages: Iterator[bytes]
    delay: float = 0.0


SILENCE = Response(iter(()))


class Responder:
    """Answers queries for the zones, and accepts NOTIFYs: *refresh* is called with the zone and the serial of one."""

    def __init__(self, zones: ZoneTable, faults: Faults, refresh: Callable[[HeldZone, int | None], None]) -> None:
        self._zones = zones
        self._faults = faults
        self._refresh = refresh

    def respond(self, wire: bytes, client: str, over_tcp: bool) -> Response:
        """The response to one message from the address *client*."""
        if len(wire) < 12 or wire[2] & 0x80:
            return SILENCE
        try:
            query = dns.message.from_wire(wire, keyring=self._zones.keyring)
        except (dns.tsig.BadSignature, dns.tsig.BadTime, dns.tsig.PeerError, dns.message.UnknownTSIGKey):
            return Response(iter([header_only(wire, dns.rcode.NOTAUTH)]))
        except Exception:  # dnspython raises many kinds for a malformed message
            return Response(iter([header_only(wire, dns.rcode.FORMERR)]))
        if len(query.question) != 1:
            return Response(iter([header_only(wire, dns.rcode.FORMERR)]))
        name = query.question[0].name
        zone = self._zones.get(name) if query.opcode() == dns.opcode.NOTIFY else self._zones.enclosing(name)
        zone_name = text_of(name) if zone is None else zone.text
        if self._faults.take('drop', zone_name) is not None:
            return SILENCE
        delay = self._faults.take('delay', zone_name)
        reply = self._reply(query, zone, zone_name, client, over_tcp)
        messages = iter([_message(query, reply, over_tcp)]) if isinstance(reply, Reply) else reply
        return Response(messages, delay.seconds if delay is not None else 0.0)

    def _reply(self, query: dns.message.Message, zone: HeldZone | None, zone_name: str, client: str,
               over_tcp: bool) -> Reply | Iterator[bytes]:
        if query.opcode() == dns.opcode.NOTIFY:
            return self._handle_notify(query, zone, client)
        if query.opcode() != dns.opcode.QUERY:
            return Reply(dns.rcode.NOTIMP, False)
        for kind, rcode in (('servfail', dns.rcode.SERVFAIL), ('refused', dns.rcode.REFUSED)):
            if self._faults.take(kind, zone_name) is not None:
                return Reply(rcode, False)
        question = query.question[0]
        if zone is None or question.rdclass != dns.rdataclass.IN:
            return Reply(dns.rcode.REFUSED, False)
        contents = zone.served
        if contents is None:
            return Reply(dns.rcode.SERVFAIL, False)
        if self._faults.take('altered', zone_name) is not None:
            contents = contents.altered
        if question.rdtype in (dns.rdatatype.AXFR, dns.rdatatype.IXFR):
            return _transfer(query, zone, contents, client, over_tcp)
        return contents.reply(question.name, question.rdtype)

    def _handle_notify(self, query: dns.message.Message, zone: HeldZone | None, client: str) -> Reply:
        """RFC 1996; accepted from the zone's primaries and from holders of its key."""
        if zone is None:
            return Reply(dns.rcode.NOTAUTH, False)
        if not query.had_tsig and not _is_primary(client, zone):
            return Reply(dns.rcode.REFUSED, False)
        serials = [int(rrset[0].serial) for rrset in query.answer if rrset.rdtype == dns.rdatatype.SOA]
        self._refresh(zone, serials[0] if serials else None)
        return Reply()


def _message(query: dns.message.Message, reply: Reply, over_tcp: bool) -> bytes:
    response = dns.message.make_response(query, our_payload=UDP_SIZE)
    response.set_rcode(reply.rcode)
    if reply.authoritative:
        response.flags |= dns.flags.AA
    response.answer, response.authority = reply.answer, reply.authority
    size = 65535 if over_tcp else max(512, min(query.payload, UDP_SIZE) if query.edns >= 0 else 512)
    return response.to_wire(max_size=size, prefer_truncation=True)


def _transfer(query: dns.message.Message, zone: HeldZone, contents: ZoneContents, client: str,
              over_tcp: bool) -> Reply | Iterator[bytes]:
    """The whole zone, for IXFR too (RFC 1995 section 4); IXFR over UDP gets the SOA: retry over TCP."""
    question = query.question[0]
    is_allowed = query.had_tsig or ipaddress.ip_address(client).is_loopback or _is_primary(client, zone)
    if not is_allowed or question.name != zone.name:
        return Reply(dns.rcode.REFUSED, False)
    if over_tcp:
        return _transfer_messages(query, contents)
    return Reply(dns.rcode.FORMERR, False) if question.rdtype == dns.rdatatype.AXFR else Reply(answer=[contents.soa])


def _transfer_messages(query: dns.message.Message, contents: ZoneContents) -> Iterator[bytes]:
    """The messages of an AXFR, each signed when the query was (RFC 8945 section 5.3.1)."""
    context = None
    for number, rrsets in enumerate(_batches(contents)):
        response = dns.message.make_response(query, our_payload=UDP_SIZE)
        response.flags |= dns.flags.AA
        if number:
            response.question = []
        response.answer = rrsets
        yield response.to_wire(max_size=65535, multi=True, tsig_ctx=context)
        context = response.tsig_ctx


def _batches(contents: ZoneContents) -> Iterator[list[dns.rrset.RRset]]:
    """The records in the order of a transfer, the SOA first and last, in batches of about MESSAGE_OCTETS."""
    batch: list[dns.rrset.RRset] = [contents.soa]
    octets = 0
    for rrset in contents.rrsets:
        for rdata in rrset:
            size = len(rdata.to_wire() or b'') + 20
            if octets + size > MESSAGE_OCTETS and octets:
                yield batch
                batch, octets = [], 0
            if not batch or not batch[-1].match(rrset.name, rrset.rdclass, rrset.rdtype, rrset.covers):
                batch.append(dns.rrset.RRset(rrset.name, rrset.rdclass, rrset.rdtype, rrset.covers))
            batch[-1].add(rdata, rrset.ttl)
            octets += size
    batch.append(contents.soa)
    yield batch


def _is_primary(client: str, zone: HeldZone) -> bool:
    return ipaddress.ip_address(client) in [ipaddress.ip_address(primary.host) for primary in zone.primaries]


TCP_TIMEOUT = 15.0
#: Datagrams that are answered at the same time.
MAX_DATAGRAMS = 200
#: Seconds between two looks whether a listener is to stop.
_STOP_PAUSE = 0.05


class _Listener:
    """A socket that is served on a thread of its own."""

    def start(self: Any) -> None:
        self._thread = threading.Thread(target=self.serve_forever, args=(_STOP_PAUSE,), name=self._name, daemon=True)
        self._thread.start()

    def stop(self: Any) -> None:
        """End the thread, and close the socket."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error in one connection or message; the others go on."""
        LOG.exception('a message from %s could not be answered', client_address[0])


class TcpListener(_Listener, socketserver.ThreadingTCPServer):
    """Serves each TCP connection on a thread of its own: *serve* is called with it and the client's address."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 128

    def __init__(self, endpoint: Endpoint, name: str, serve: Callable[[socket.socket, str], None]) -> None:
        self.address_family = socket.AF_INET6 if ':' in endpoint.host else socket.AF_INET
        super().__init__((endpoint.host, endpoint.port), socketserver.BaseRequestHandler)
        self.endpoint = Endpoint(endpoint.host, self.server_address[1])
        self._name = name
        self._serve = serve
        self._open: set[Any] = set()

    def stop(self) -> None:
        """End the thread, and close everything."""
        super().stop()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Have the connection served."""
        self._open.add(request)
        super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve the connection, on its thread."""
        with contextlib.suppress(OSError):  # the client has gone, or the server stops
            request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._serve(request, client_address[0])

    def shutdown_request(self, request: Any) -> None:
        """Close the connection."""
        self._open.discard(request)
        super().shutdown_request(request)


class UdpListener(_Listener, socketserver.ThreadingUDPServer):
    """Answers each datagram on a thread of its own: *answer* is called with the socket, the datagram and the client.

    While :data:`MAX_DATAGRAMS` are being answered, which takes as long as their delay, others are dropped.
    """

    daemon_threads = True
    max_packet_size = 65535

    def __init__(self, endpoint: Endpoint, name: str,
                 answer: Callable[[socket.socket, bytes, tuple[str, int]], None]) -> None:
        self.address_family = socket.AF_INET6 if ':' in endpoint.host else socket.AF_INET
        super().__init__((endpoint.host, endpoint.port), socketserver.BaseRequestHandler)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._name = name
        self._answer = answer
        self._free_threads = threading.Semaphore(MAX_DATAGRAMS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Have the datagram answered, if a thread is free."""
        if self._free_threads.acquire(blocking=False):
            try:
                super().process_request(request, client_address)
            except RuntimeError:  # this host has no thread for it
                self._free_threads.release()
                raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the datagram, on its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free_threads.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer the datagram."""
        wire, sock = request
        self._answer(sock, wire, client_address)


class DnsSockets:
    """The sockets of one endpoint; *respond* is given a message, its sender's address and whether it came over TCP."""

    def __init__(self, respond: Callable[[bytes, str, bool], Response]) -> None:
        self._respond = respond
        self._listeners: Sequence[_Listener] = ()
        self._stopping = threading.Event()

    def start(self, listen: Endpoint) -> Endpoint:
        """Bind and serve; the endpoint with its actual port, which is free for both UDP and TCP.

        :raises OSError: when it is taken
        """
        self._stopping = threading.Event()
        for tries_left in reversed(range(1 if listen.port else 50)):
            tcp = TcpListener(listen, 'dns-tcp', self._serve_connection)
            try:
                self._listeners = tcp, UdpListener(tcp.endpoint, 'dns-udp', self._answer_udp)
                break
            except OSError:
                tcp.server_close()
                if not tries_left:
                    raise
        for listener in self._listeners:
            listener.start()
        return tcp.endpoint

    def stop(self) -> None:
        """Close the sockets; delayed answers are not sent."""
        self._stopping.set()
        for listener in self._listeners:
            listener.stop()
        self._listeners = ()

    def _answer_udp(self, udp: socket.socket, wire: bytes, client: tuple[str, int]) -> None:
        response = self._respond(wire, client[0], False)
        if not self._stopping.wait(response.delay):
            with contextlib.suppress(OSError):
                for message in response.messages:
                    udp.sendto(message, client)

    def _serve_connection(self, connection: socket.socket, client: str) -> None:
        connection.settimeout(TCP_TIMEOUT)
        with connection.makefile('rb') as stream:
            while not self._stopping.is_set():
                prefix = stream.read(2)
                if len(prefix) < 2:
                    return
                length = struct.unpack('>H', prefix)[0]
                wire = stream.read(length)
                if len(wire) < length:
                    return
                response = self._respond(wire, client, True)
                if response.delay:
                    self._stopping.wait(response.delay)
                for message in response.messages:
                    connection.sendall(struct.pack('>H', len(message)) + message)


MAX_LINE = 65536
Handler = Callable[[Mapping[str, Any]], Any]


class ControlServer:
    """Serves the control socket; the handler of each verb is called with the request."""

    def __init__(self, secret: str, verbs: Mapping[str, Handler]) -> None:
        if not secret:
            raise InvalidField(field='secret', why='the control socket needs one')
        self._secret = secret
        self._verbs = verbs
        self._listener: TcpListener | None = None

    def start(self, listen: Endpoint) -> Endpoint:
        """Bind and serve; the endpoint with its actual port.

        :raises InvalidField: when it is not on loopback
        """
        if not ipaddress.ip_address(listen.host).is_loopback:
            raise InvalidField(field='control', why=f'{listen.host} is not a loopback address')
        self._listener = TcpListener(listen, 'control', self._serve)
        self._listener.start()
        return self._listener.endpoint

    def stop(self) -> None:
        """Close the socket, if it is open."""
        if self._listener is not None:
            self._listener.stop()
            self._listener = None

    def _serve(self, connection: socket.socket, client: str) -> None:
        with connection.makefile('rb') as stream:
            while True:
                line = stream.readline(MAX_LINE)
                if not line:
                    return
                connection.sendall(json.dumps(self._handle(line)).encode() + b'\n')
                if not line.endswith(b'\n'):
                    return

    def _handle(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ValueError('it is not an object')
        except (ValueError, RecursionError) as error:
            return _refusal('request', f'the request is not a line of JSON: {error}')
        secret = request.get('secret')
        if not isinstance(secret, str) or not hmac.compare_digest(secret.encode(errors='replace'),
                                                                  self._secret.encode()):
            return _refusal('secret', 'the secret is wrong')
        verb = self._verbs.get(str(request.get('verb')))
        if verb is None:
            return _refusal('request', f"verb: there is no '{request.get('verb')}'")
        try:
            return {'ok': True, 'result': verb(request)}
        except BadInput as error:
            return _refusal('request', str(error))
        except PoolError as error:
            return _refusal('failed', str(error))
        except Exception as error:  # the client is told, and the connection goes on
            LOG.exception('%s failed', request['verb'])
            return _refusal('failed', f'{type(error).__name__}: {error}')


def _refusal(kind: str, error: str) -> dict[str, Any]:
    return {'ok': False, 'kind': kind, 'error': error}


class NameServer:
    """A secondary name server; it may be stopped and started again.

    :param listen: where it answers DNS; port 0 takes any free port, which is kept after a stop
    :param control: the endpoint of its control socket, on loopback; None for none
    :param secret: the secret of the control socket
    :param state: folder that keeps the zones through a restart; None loses them at each stop
    :param keys: TSIG keys beside those of the zones
    :param retry: most seconds between tries of a failed transfer
    :raises InvalidField: for a control socket without a secret
    """

    def __init__(self, listen: Endpoint, control: Endpoint | None = None, secret: str = '', *,
                 state: pathlib.Path | None = None, keys: Sequence[TsigKey] = (), retry: float = 30.0) -> None:
        self.endpoint = listen
        self.control_endpoint = control
        self.faults = Faults()
        self._zones = ZoneTable(state, tuple(keys))
        self._refresher = Refresher(self._zones, self.faults, retry)
        self._sockets = DnsSockets(Responder(self._zones, self.faults, self._refresher.refresh).respond)
        self._control = None if control is None else ControlServer(secret, self._control_handlers())
        self._running = False

    def start(self) -> NameServer:
        """Serve the zones of the state folder, if any, and refresh them.

        :raises OSError: when an endpoint is taken
        :raises InvalidField: when the control socket would not be on loopback
        """
        if self._running:
            return self
        self.endpoint = self._sockets.start(self.endpoint)
        try:
            if self._control is not None and self.control_endpoint is not None:
                self.control_endpoint = self._control.start(self.control_endpoint)
        except BaseException:  # whatever ended the start, a killed green thread too: release the ports, then raise
            self._sockets.stop()
            raise
        self._running = True
        self._refresher.start()
        for zone in self._zones.load():
            self._refresher.refresh(zone)
        return self

    def stop(self) -> None:
        """Stop answering, and end every thread."""
        if not self._running:
            return
        self._running = False
        self._sockets.stop()
        if self._control is not None:
            self._control.stop()
        self._refresher.stop()

    def add_zone(self, name: str, primaries: Sequence[Endpoint], key: TsigKey | None = None) -> bool:
        """Add a zone and fetch it; whether anything changed.

        :raises InvalidField: when the name is not valid, or there are no primaries
        """
        if not primaries:
            raise InvalidField(field='primaries', why='a zone needs at least one')
        zone = self._zones.add(_name(name), tuple(primaries), key)
        if zone is not None:
            self._refresher.refresh(zone)
        return zone is not None

    def delete_zone(self, name: str) -> bool:
        """Delete a zone; whether there was one."""
        return self._zones.delete(_name(name))

    def refresh(self, name: str) -> bool:
        """Fetch a zone if its primaries have a newer one; whether there is such a zone."""
        zone = self._zones.get(_name(name))
        if zone is not None:
            self._refresher.refresh(zone)
        return zone is not None

    def refetch(self, name: str) -> bool:
        """Fetch a zone again, whatever its serial; whether there is such a zone."""
        zone = self._zones.get(_name(name))
        if zone is not None:
            zone.is_forced = True
            self._refresher.refresh(zone)
        return zone is not None

    def serial(self, name: str) -> int | None:
        """The serial of a zone, whatever the faults; None before the first transfer."""
        zone = self._zones.get(_name(name))
        return None if zone is None or zone.contents is None else zone.contents.serial

    def list_zones(self) -> list[dict[str, Any]]:
        """All zones, each as ``{name, serial, primaries, error}``."""
        return [{'name': zone.text, 'serial': zone.contents.serial if zone.contents is not None else None,
                 'primaries': [str(primary) for primary in zone.primaries], 'error': zone.error}
                for zone in sorted(self._zones.all(), key=lambda zone: zone.name)]

    def set_fault(self, text: str) -> None:
        """Activate a fault; see :meth:`Fault.parse`."""
        self.faults.set(Fault.parse(text))

    def clear_faults(self) -> None:
        """Clear all faults, and fetch the zones that were not fetched because of them."""
        if any(fault.kind in TRANSFER_FAULTS for fault in self.faults.clear()):
            for zone in self._zones.all():
                self._refresher.refresh(zone)

    def _control_handlers(self) -> dict[str, Any]:
        return {
            'ping': lambda request: designate_pool.__version__,
            'add_zone': lambda request: self.add_zone(_text(request, 'name'), _endpoints(request), _key(request)),
            'delete_zone': lambda request: self.delete_zone(_text(request, 'name')),
            'refetch': lambda request: self.refetch(_text(request, 'name')),
            'list_zones': lambda request: self.list_zones(),
            'set_fault': lambda request: self.set_fault(_text(request, 'fault')),
            'clear_faults': lambda request: self.clear_faults(),
        }


def _name(text: str) -> dns.name.Name:
    try:
        return dns.name.from_text(text)
    except (dns.exception.DNSException, ValueError) as error:
        raise InvalidField(field='name', why=f'{text!r} is not a domain name ({error})') from error


def _text(request: Mapping[str, Any], field: str) -> str:
    value = request.get(field)
    if not isinstance(value, str) or not value:
        raise InvalidField(field=field, why='it must be a text')
    return value


def _endpoints(request: Mapping[str, Any]) -> list[Endpoint]:
    try:
        return [Endpoint(str(ipaddress.ip_address(primary['host'])), int(primary['port']))
                for primary in request['primaries']]
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidField(field='primaries', why=f'it must be a list of {{host, port}} ({error})') from error


def _key(request: Mapping[str, Any]) -> TsigKey | None:
    settings = request.get('key')
    if settings is None:
        return None
    try:
        key = TsigKey(settings['name'], settings['algorithm'], settings['secret'])
        tsig.key_from(key)
    except Exception as error:  # dnspython raises many kinds for the parts of a key
        why = f'it must be {{name, algorithm, secret}} ({type(error).__name__})'
        raise InvalidField(field='key', why=why) from error
    return key
