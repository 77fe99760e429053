"""Zones of another name server, by AXFR."""

from __future__ import annotations

import ipaddress
import socket

from designate_pool.errors import BackendError, SourceError
from designate_pool.planner.providers.base import BaseSource
from designate_pool.planner.sources.populate import add_pairs
from designate_pool.planner.transfer_in import transfer
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.tcp_client import TcpPeer, key_of


class AxfrSource(BaseSource):
    """A name server that allows transfers of its zones (RFC 5936); the options are those of octodns-bind's class.

    :param host: an address or a host name
    :param ipv6: whether a host name is resolved to an IPv6 address
    :param timeout: seconds for one transfer, from connecting to its last record
    :param key_name: of a TSIG key (RFC 8945) that the server has
    :param key_secret: in Base64
    :param key_algorithm: ``hmac-sha256`` when None
    :param update_batch_size: ignored; accepted so that configurations of octoDNS need no change
    """

    SUPPORTS_SOA = True

    def __init__(self, id: str, host: str, port: int = 53, ipv6: bool = False, timeout: float = 60.0,
                 key_name: str | None = None, key_secret: str | None = None, key_algorithm: str | None = None,
                 update_batch_size: int | None = None) -> None:
        super().__init__(id)
        self.host = host
        self.port = int(port)
        self.ipv6 = ipv6
        self.timeout = float(timeout)
        self._key = key_of(key_name, key_secret, key_algorithm)

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        try:
            pairs = transfer(TcpPeer(self._address(), self.port, self._key), zone.name, self.timeout)
        except (BackendError, OSError) as error:
            raise SourceError(source=f'{zone.name} of {self.host} port {self.port}', why=_words(error)) from error
        add_pairs(zone, pairs.items(), lenient)
        return True

    def _address(self) -> str:
        try:
            return str(ipaddress.ip_address(self.host))
        except ValueError:
            family = socket.AF_INET6 if self.ipv6 else socket.AF_INET
            return str(socket.getaddrinfo(self.host, None, family, socket.SOCK_STREAM)[0][4][0])


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).rstrip('.')
