"""The zones of the server: in memory, and each in a file if it has a folder."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import pathlib
import threading
import time
from functools import cached_property

import dns.exception
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdataset
import dns.rdatatype
import dns.rrset
import dns.tsig
import dns.zone
from dns.name import Name
from dns.rdatatype import RdataType
from dns.rrset import RRset

from designate_pool.model import Endpoint, TsigKey
from designate_pool.protocol import tsig

LOG = logging.getLogger(__name__)
MAX_CNAMES = 8


@dataclasses.dataclass
class Reply:
    """The sections of a reply."""

    rcode: dns.rcode.Rcode = dns.rcode.NOERROR
    authoritative: bool = True
    answer: list[RRset] = dataclasses.field(default_factory=list)
    authority: list[RRset] = dataclasses.field(default_factory=list)


class ZoneContents:
    """An immutable zone, with absolute names and an SOA."""

    def __init__(self, zone: dns.zone.Zone) -> None:
        self.zone = zone
        assert zone.origin is not None
        self.origin: Name = zone.origin
        self.soa: RRset = zone.find_rrset(self.origin, dns.rdatatype.SOA)

    @property
    def serial(self) -> int:
        """The serial of its SOA."""
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
        """The reply to a query for *name*, which is in the zone; there are no referrals."""
        reply = Reply()
        for _ in range(MAX_CNAMES):
            target = self._add_records(name, rtype, reply)
            if target is None or not target.is_subdomain(self.origin):
                break
            name = target
        return reply

    def _add_records(self, name: Name, rtype: RdataType, reply: Reply) -> Name | None:
        """Add the records of *name* to *reply*; the target when they are a CNAME."""
        source = name if name in self._names else self._wildcard_of(name)
        if source is None:
            reply.rcode = dns.rcode.NXDOMAIN
            reply.authority.append(self._negative_soa())
            return None
        rdatasets = self.zone.nodes[source].rdatasets if source in self.zone.nodes else []
        matching = [rdataset for rdataset in rdatasets if rtype in (rdataset.rdtype, dns.rdatatype.ANY)]
        if matching:
            reply.answer += [rrset_of(name, rdataset) for rdataset in matching]
            return None
        for rdataset in rdatasets:
            if rdataset.rdtype == dns.rdatatype.CNAME:
                reply.answer.append(rrset_of(name, rdataset))
                target: Name = rdataset[0].target
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
    """*rdataset* with its owner."""
    return dns.rrset.from_rdata_list(name, rdataset.ttl, list(rdataset))


def _altered(rdataset: dns.rdataset.Rdataset) -> dns.rdataset.Rdataset:
    other = {dns.rdatatype.A: '192.0.2.254', dns.rdatatype.AAAA: '2001:db8::fe'}.get(rdataset.rdtype)
    return rdataset if other is None else dns.rdataset.from_text('IN', rdataset.rdtype, rdataset.ttl, other)


@dataclasses.dataclass
class HeldZone:
    """A zone and the state of its refreshes; times are monotonic seconds.

    :ivar contents: None until the first transfer
    :ivar fresh_at: when it was last known to have its primary's serial
    :ivar error: why the last try failed; None when it succeeded
    :ivar failures: tries that have failed since the last success
    :ivar is_forced: whether it is to be fetched whatever its serial
    :ivar due_at: when it is to be refreshed next; None while it is refreshed, unless it is to be once more
    """

    name: dns.name.Name
    primaries: tuple[Endpoint, ...]
    key: TsigKey | None = None
    contents: ZoneContents | None = None
    fresh_at: float = dataclasses.field(default_factory=time.monotonic)
    error: str | None = None
    failures: int = 0
    is_refreshing: bool = False
    notified_serial: int | None = None
    is_forced: bool = False
    due_at: float | None = None

    @property
    def text(self) -> str:
        """Its name as in faults and on the control socket."""
        return text_of(self.name)

    @property
    def served(self) -> ZoneContents | None:
        """The contents; None before the first transfer, and when they have expired (RFC 1035 section 3.3.13)."""
        if self.contents is None or time.monotonic() - self.fresh_at > self.contents.soa[0].expire:
            return None
        return self.contents


class ZoneTable:
    """All zones by name.

    :param folder: keeps them through a restart; None for memory only
    :param keys: TSIG keys beside those of the zones
    """

    def __init__(self, folder: pathlib.Path | None, keys: tuple[TsigKey, ...]) -> None:
        self._folder = folder
        self._keys = keys
        self._lock = threading.Lock()
        self._zones: dict[dns.name.Name, HeldZone] = {}
        self.keyring: dict[dns.name.Name, dns.tsig.Key] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def load(self) -> list[HeldZone]:
        """Read the zones from the folder; none without a folder."""
        with self._lock:
            self._zones = {zone.name: zone for zone in self._read()} if self._folder is not None else {}
            self._update_keyring()
            return list(self._zones.values())

    def add(self, name: dns.name.Name, primaries: tuple[Endpoint, ...], key: TsigKey | None) -> HeldZone | None:
        """Add a zone, or change primaries and key of one; None when nothing has changed.

        :raises OSError: when it cannot be written; then nothing has changed
        """
        with self._lock:
            zone = self._zones.get(name)
            if zone is not None and (zone.primaries, zone.key) == (primaries, key):
                return None
            self._save(name, primaries, key, None if zone is None else zone.contents)
            if zone is None:
                zone = self._zones[name] = HeldZone(name, primaries, key)
            else:
                zone.primaries, zone.key = primaries, key
            self._update_keyring()
        return zone

    def delete(self, name: dns.name.Name) -> bool:
        """Delete a zone and its file; False when there is none.

        :raises OSError: when its file cannot be deleted; then the zone is still there
        """
        with self._lock:
            if name not in self._zones:
                return False
            if self._folder is not None:
                self._path(self._folder, name).unlink(missing_ok=True)
            del self._zones[name]
            self._update_keyring()
        return True

    def replace(self, zone: HeldZone, contents: ZoneContents) -> bool:
        """Replace the contents of *zone*; False when it was deleted meanwhile."""
        with self._lock:
            if self._zones.get(zone.name) is not zone:
                return False
            # First, so that a crash never takes back a serial that was served.
            self._save(zone.name, zone.primaries, zone.key, contents)
            zone.contents, zone.fresh_at = contents, time.monotonic()
        return True

    def get(self, name: dns.name.Name) -> HeldZone | None:
        """The zone of this name; None if the server has none."""
        return self._zones.get(name)

    def enclosing(self, name: dns.name.Name) -> HeldZone | None:
        """The zone that contains *name*: the one with the longest name."""
        while True:
            zone = self._zones.get(name)
            if zone is not None or name == dns.name.root:
                return zone
            name = name.parent()

    def all(self) -> list[HeldZone]:
        """All zones of the server."""
        with self._lock:
            return list(self._zones.values())

    def _update_keyring(self) -> None:
        keys = [*self._keys, *(zone.key for zone in self._zones.values() if zone.key is not None)]
        self.keyring = {key.name: key for key in map(tsig.key_from, dict.fromkeys(keys))}

    @staticmethod
    def _path(folder: pathlib.Path, name: Name) -> pathlib.Path:
        return folder / f'{hashlib.sha256(name.to_digestable()).hexdigest()}.json'

    def _save(self, name: Name, primaries: tuple[Endpoint, ...], key: TsigKey | None,
              contents: ZoneContents | None) -> None:
        if self._folder is None:
            return
        path = self._path(self._folder, name)
        fresh = path.with_suffix('.new')
        try:
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w', encoding='utf-8') as file:
                json.dump({'name': name.to_text(), 'key': key and dataclasses.asdict(key),
                           'primaries': [dataclasses.asdict(primary) for primary in primaries],
                           'contents': contents and contents.zone.to_text(want_origin=True)}, file)
            fresh.replace(path)
        except OSError:  # the disk is full
            fresh.unlink(missing_ok=True)
            raise

    def _read(self) -> list[HeldZone]:
        assert self._folder is not None
        for path in self._folder.glob('*.new'):  # the server was killed while it wrote
            path.unlink()
        zones = []
        for path in sorted(self._folder.glob('*.json')):
            try:
                saved = json.loads(path.read_text())
                name = dns.name.from_text(saved['name'])
                contents = saved['contents'] and ZoneContents(dns.zone.from_text(
                    saved['contents'], name, relativize=False, check_origin=False))
                zones.append(HeldZone(name, tuple(Endpoint(**primary) for primary in saved['primaries']),
                                      saved['key'] and TsigKey(**saved['key']), contents))
            except (OSError, ValueError, LookupError, TypeError, dns.exception.DNSException) as error:
                LOG.warning('a zone is lost: %s cannot be read (%s)', path, error)
        return zones


def text_of(name: dns.name.Name) -> str:
    """A name as text, with its final dot."""
    return name.to_text().lower()
