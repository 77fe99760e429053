"""A zone's contents at one serial, and the reply to a query (RFC 1034 section 4.3.2, RFC 4592)."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdataset
import dns.rdatatype
import dns.rrset
import dns.zone
from dns.name import Name
from dns.rdatatype import RdataType
from dns.rrset import RRset

MAX_CNAMES = 8


@dataclasses.dataclass
class Reply:
    """The sections of a reply."""

    rcode: dns.rcode.Rcode = dns.rcode.NOERROR
    authoritative: bool = True
    answer: list[RRset] = dataclasses.field(default_factory=list)
    authority: list[RRset] = dataclasses.field(default_factory=list)
    additional: list[RRset] = dataclasses.field(default_factory=list)


class ZoneContents:
    """An immutable zone.

    :param zone: with absolute names, and an SOA
    """

    def __init__(self, zone: dns.zone.Zone) -> None:
        self.zone = zone
        assert zone.origin is not None
        self.origin: Name = zone.origin
        self.soa: RRset = zone.find_rrset(self.origin, dns.rdatatype.SOA)

    @property
    def serial(self) -> int:
        return int(self.soa[0].serial)

    @cached_property
    def rrsets(self) -> list[RRset]:
        """All RRsets but the SOA."""
        return [rrset_of(name, rdataset) for name, rdataset in self.zone.iterate_rdatasets()
                if rdataset.rdtype != dns.rdatatype.SOA]

    @cached_property
    def altered(self) -> ZoneContents:
        """The same serial with other contents: other addresses, and a TXT record at the apex."""
        zone = dns.zone.Zone(self.origin, relativize=False)
        for name, rdataset in self.zone.iterate_rdatasets():
            zone.replace_rdataset(name, _altered(rdataset))
        zone.replace_rdataset(self.origin, dns.rdataset.from_text('IN', 'TXT', 60, '"altered"'))
        return ZoneContents(zone)

    def reply(self, name: Name, rtype: RdataType) -> Reply:
        """The reply to a query for *name*, which is in the zone."""
        reply = Reply()
        for _ in range(MAX_CNAMES):
            target = self._add_records(name, rtype, reply)
            if target is None or not target.is_subdomain(self.origin):
                break
            name = target
        return reply

    def _add_records(self, name: Name, rtype: RdataType, reply: Reply) -> Name | None:
        """Add the records of *name* to *reply*; the target when they are a CNAME."""
        delegation = self._delegation_of(name, rtype)
        if delegation is not None:
            self._add_referral(delegation, reply)
            return None
        source = name if name in self._names else self._wildcard_of(name)
        if source is None:
            reply.rcode = dns.rcode.NXDOMAIN
            reply.authority.append(self._negative_soa())
            return None
        rdatasets = self.zone.nodes[source].rdatasets if source in self.zone.nodes else []
        matching = [each for each in rdatasets if rtype in (each.rdtype, dns.rdatatype.ANY)]
        if matching:
            reply.answer += [rrset_of(name, each) for each in matching]
            return None
        for each in rdatasets:
            if each.rdtype == dns.rdatatype.CNAME:
                reply.answer.append(rrset_of(name, each))
                target: Name = each[0].target
                return target
        reply.authority.append(self._negative_soa())
        return None

    @cached_property
    def _names(self) -> frozenset[Name]:
        """Every name that exists, empty non-terminals included."""
        names = set()
        for name in self.zone.nodes:
            while name not in names:
                names.add(name)
                if name == self.origin:
                    break
                name = name.parent()
        return frozenset(names)

    def _ancestors(self, name: Name) -> list[Name]:
        """The names from below the apex down to *name*."""
        found = []
        while name != self.origin:
            found.append(name)
            name = name.parent()
        return found[::-1]

    def _delegation_of(self, name: Name, rtype: RdataType) -> Name | None:
        """The name above or at *name* that is delegated; None when none is."""
        for each in self._ancestors(name):
            if self.zone.get_rdataset(each, dns.rdatatype.NS) is not None:
                return None if each == name and rtype == dns.rdatatype.DS else each
        return None

    def _add_referral(self, delegation: Name, reply: Reply) -> None:
        servers = self.zone.find_rrset(delegation, dns.rdatatype.NS)
        reply.authoritative = bool(reply.answer)
        reply.authority.append(servers)
        for server in servers:
            for rtype in (dns.rdatatype.A, dns.rdatatype.AAAA):
                glue = self.zone.get_rrset(server.target, rtype)
                if glue is not None:
                    reply.additional.append(glue)

    def _wildcard_of(self, name: Name) -> Name | None:
        """The wildcard that covers *name*, which does not exist (RFC 4592 section 3.3.1)."""
        encloser = name.parent()
        while encloser not in self._names:
            encloser = encloser.parent()
        wildcard = dns.name.Name((b'*',) + encloser.labels)
        return wildcard if wildcard in self.zone.nodes else None

    def _negative_soa(self) -> RRset:
        """The SOA as it goes into a negative answer (RFC 2308 section 3)."""
        soa = rrset_of(self.origin, self.soa)
        soa.ttl = min(soa.ttl, soa[0].minimum)
        return soa


def rrset_of(name: Name, rdataset: dns.rdataset.Rdataset) -> RRset:
    return dns.rrset.from_rdata_list(name, rdataset.ttl, list(rdataset))


def _altered(rdataset: dns.rdataset.Rdataset) -> dns.rdataset.Rdataset:
    other = {dns.rdatatype.A: '192.0.2.254', dns.rdatatype.AAAA: '2001:db8::fe'}.get(rdataset.rdtype)
    return rdataset if other is None else dns.rdataset.from_text('IN', rdataset.rdtype, rdataset.ttl, other)
