"""What a master sends, as text: a zone or a difference, or an error.  Nothing of it is used unless all of it is right.

:class:`InboundContents` receives the records of a transfer; it does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype

from designate_pool.errors import BackendError
from designate_pool.model import MasterRecord, ZoneTransferIn
from designate_pool.protocol.names_and_rdata import LOWER, MAX_TTL
from designate_pool.settings import MiniDnsSettings

_SOA = dns.rdatatype.SOA
#: Types of queries and of messages, which are no data (RFC 6895 section 3.1).
_NO_DATA = frozenset({0, dns.rdatatype.OPT, *range(128, 256)})


class InboundContents:
    """The records of one transfer.

    :param name: of the zone
    """

    def __init__(self, name: str, settings: MiniDnsSettings) -> None:
        self._name = dns.name.from_text(name).canonicalize()
        self._settings = settings
        self._octets = 0
        self._soa: tuple[int, str] | None = None
        # TTLs by name, type and rdata.
        self._added: dict[tuple[str, str, str], int] = {}
        self._gone: dict[tuple[str, str, str], int] = {}
        self._count = 0
        self._owners: dict[bytes, str] = {}

    def received(self, octets: int) -> None:
        """Count a message.

        :raises BackendError: when the master has sent too much
        """
        self._octets += octets
        if self._octets > self._settings.transfer_in_bytes:
            raise BackendError(why=f'the transfer has more than {self._settings.transfer_in_bytes} octets')

    def add(self, owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int,
            names: dict[int, bytes]) -> None:
        """Add a record."""
        name, word, ttl, text = self._record(owner, rtype, ttl, message, start, end)
        if rtype != _SOA:
            known_ttl = self._added.setdefault((name, word, text), ttl)
            self._added[name, word, text] = min(ttl, known_ttl)
        elif self._soa is None and name == self._name.to_text():
            self._soa = ttl, text
        else:
            raise BackendError(why=f'the transfer has an SOA at {name}')

    def remove(self, owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int,
               names: dict[int, bytes]) -> None:
        """Remove a record."""
        name, word, ttl, text = self._record(owner, rtype, ttl, message, start, end)
        # What an earlier step has added was not there before.
        if self._added.pop((name, word, text), None) is None:
            self._gone[name, word, text] = ttl

    def result(self, serial: int, from_serial: int | None) -> ZoneTransferIn:
        """The whole transfer, which has ended.

        :param from_serial: of a difference; None for a whole zone
        """
        assert self._soa is not None
        ttl, soa = self._soa
        return ZoneTransferIn(serial, soa, ttl, _records(self._added), _records(self._gone), from_serial)

    def _record(self, owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int) -> MasterRecord:
        self._count += 1
        if self._count > self._settings.transfer_in_records + 1:
            raise BackendError(why=f'the transfer has more than {self._settings.transfer_in_records} records')
        name = self._owners.get(owner)
        word = ''
        try:
            if name is None:
                parsed = dns.name.from_wire(owner, 0)[0]
                if not parsed.is_subdomain(self._name):
                    raise BackendError(why=f'the transfer has a record of {parsed}, which does not lie in {self._name}')
                name = self._owners[owner] = parsed.to_text()
            if rtype in _NO_DATA:
                raise BackendError(why=f'the transfer has a record of type {rtype}, which is no data, at {name}')
            kind = dns.rdatatype.RdataType.make(rtype)
            word = dns.rdatatype.to_text(kind)
            text = dns.rdata.from_wire(dns.rdataclass.IN, kind, message, start, end - start).to_text()
        except (dns.exception.DNSException, ValueError) as error:
            raise BackendError(why=f'the transfer has a record that is not valid: {name} {word} ({error})') from None
        # A TTL with the highest bit set is zero (RFC 2181 section 8).
        return name, word, ttl if ttl <= MAX_TTL else 0, text.lower() if word in LOWER else text


def _records(ttls: Mapping[tuple[str, str, str], int]) -> list[MasterRecord]:
    return [(name, word, ttl, text) for (name, word, text), ttl in ttls.items()]
