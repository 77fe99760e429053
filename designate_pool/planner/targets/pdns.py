"""PowerDNS Authoritative as a primary server whose zones are written through its HTTP API.

The invariant: a zone has the pool's serial only if it has all records that belong to it.  A zone is created with all
its records in one request, so that it is never served without them; if they do not fit into one, or one is refused, it
is created with the serial before and no records.  All changes go in one request together with the new serial, which
PowerDNS carries out completely or not at all; if they do not fit into one request, or a record is refused, the SOA goes
with the last request, and only if everything else succeeded.

PowerDNS refuses a whole request because of one bad record.  That record is found by its name in the error message, or
by halving the request, and the others are sent without it.

Disabled records are not served, so plans do not see them; they and comments are kept when the RRset is changed.
PowerDNS (4.7.3) accepts record data only in exactly the form in which it returns them; the forms were found by
experiments.  Records of types that are not in :data:`TYPES` (LUA, ALIAS, types that are not tested) are left alone.
"""

from __future__ import annotations

import collections
import ipaddress
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rdtypes.svcbbase

from designate_pool import serial
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, InvalidField, SourceError
from designate_pool.model import Reason
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import ServerProvider
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.powerdns import PdnsAnswer, PdnsServer, zone_path
from designate_pool.protocol.names_and_rdata import LOWER, name_of_server, normal_rdata
from designate_pool.protocol.rrset import RRset
from designate_pool.protocol.soa_rdata import serial_of, with_serial

#: The values of the option *kind*, and the API's names for them that every version accepts.
KINDS = {'native': 'Native', 'master': 'Master', 'primary': 'Master'}

#: The values of SOA-EDIT-API with which PowerDNS increments the serial itself.
INCREMENTING = frozenset({'DEFAULT', 'INCREASE', 'EPOCH', 'SOA-EDIT', 'SOA-EDIT-INCREASE'})

#: Seconds for listing all zones of a server, which may have a million.
LISTING_SECONDS = 120.0
#: The part of ``webserver-max-bodysize`` that is used: it may count the head of the request and escapes too.
USABLE = 0.9
#: Octets of a request for which the setting ``webserver-max-bodysize`` (2 MB by default) need not be read.
SURE_SIZE = 900_000
#: The number of refused requests after which the rest of a plan is not tried.
MOST_REFUSALS = 60
_REFUSED = (413, 422)
Entry = dict[str, Any]
TYPES = frozenset({
    'A', 'AAAA', 'AFSDB', 'APL', 'CAA', 'CERT', 'CNAME', 'CSYNC', 'DHCID', 'DNAME', 'DS', 'EUI48', 'EUI64', 'HINFO',
    'HTTPS', 'IPSECKEY', 'KX', 'L32', 'LOC', 'LP', 'MX', 'NAPTR', 'NS', 'OPENPGPKEY', 'PTR', 'RP', 'SMIMEA', 'SOA',
    'SPF', 'SRV', 'SSHFP', 'SVCB', 'TLSA', 'TXT', 'URI'})
#: Types whose last field dnspython writes with spaces, with the number of fields before it.
_BEFORE_LAST = {'DHCID': 0, 'DS': 3, 'IPSECKEY': 4, 'OPENPGPKEY': 0, 'SMIMEA': 3, 'SSHFP': 2, 'TLSA': 3}
#: Parameters of SVCB and HTTPS that PowerDNS writes by name and without quotation marks.
_BARE = frozenset({'mandatory', 'alpn', 'port', 'ipv4hint', 'ipv6hint'})
_KNOWN = _BARE | {'no-default-alpn', 'ech'}
_PARAMETER = re.compile(r'([a-z0-9-]+)(?:="((?:[^"\\]|\\.)*)")?')
#: In a name, PowerDNS escapes only dots and backslashes, and writes octets that are not printable as ``\DDD``.
_ESCAPED = re.compile(r'\\(.)')
_SPECIAL = re.compile(r'\\.|["();@$]')


class PdnsProvider(ServerProvider):
    """A PowerDNS Authoritative Server.

    :param api_url: the URL of the API, without ``/api/v1``; made of *host* and *port* when not given
    :param api_key: the ``api-key`` of its ``pdns.conf``
    :param ca_file: the certificate authorities for an ``https`` URL; those of the system when not given
    :param timeout: seconds for one request
    :param kind: of the zones that are created: ``Native``, or ``Master`` (``Primary``) if they have secondaries
    :param options: of :class:`~designate_pool.planner.providers.base.BaseProvider`
    :raises InvalidField: for values that cannot be used
    """

    SUPPORTS = TYPES
    SUPPORTS_SOA = True
    MARK_WILDCARD = '_wildcard'  # the API takes an asterisk only as the whole first label

    def __init__(self, id: str, api_key: str, api_url: str | None = None, host: str | None = None, port: int = 8081,
                 server_id: str = 'localhost', ca_file: str | None = None, timeout: float = 10.0, kind: str = 'Native',
                 **options: Any) -> None:
        super().__init__(id, **options)
        if not api_url and not host:
            raise InvalidField(field='api_url', why='it must be given, or host')
        if not api_key:
            raise InvalidField(field='api_key', why='it must be given')
        if kind.lower() not in KINDS:
            raise InvalidField(field='kind', why=f"'{kind}' is none of Native, Master, Primary")
        shown = f'[{host}]' if host and ':' in host else host
        self.timeout = timeout
        self._server = PdnsServer(api_url or f'http://{shown}:{port}', api_key, ca_file, server_id)
        self._kind = KINDS[kind.lower()]

    def apply(self, plan: Plan) -> ApplyResult:
        if not plan.exists and not self.apply_disabled and self._create_complete(plan):
            return ApplyResult(applied=len(plan.changes))
        return super().apply(plan)

    def create_zone(self, desired: Zone) -> None:
        rrsets = [entry(rrset) for rrset in (announced(desired), desired.root_ns) if rrset is not None]
        self._create(desired, rrsets)

    def _create_complete(self, plan: Plan) -> bool:
        """Create the zone with all its records; False, with nothing changed, if one request cannot."""
        if plan.desired.get(plan.zone, 'SOA') is None:
            return False  # PowerDNS makes one, and increments its serial
        entries, size = list[Entry](), 0
        for rrset in (new for change in plan.changes for new in change.new):
            entries.append(entry(rrset))
            size += len(json.dumps(entries[-1])) + 2  # with a comma and a space
            if size > SURE_SIZE:
                return False
        try:
            if not self._create(plan.desired, entries):
                return False
        except BackendRefused:  # because of one record, or of something that is told by the next request
            return False
        if self._kind != KINDS['native']:
            self._notify(plan.zone)
        return True

    def _create(self, desired: Zone, entries: Sequence[Entry]) -> bool:
        """Create a zone with these records; False, if it exists."""
        return self._server.create_zone(desired.name, {
            'kind': self._kind, 'nameservers': [], 'rrsets': entries,
            # PowerDNS increments the serial only of a zone without a desired one.
            'soa_edit_api': 'DEFAULT' if desired.get(desired.name, 'SOA') is None else ''},
            KINDS, self._deadline()) is None

    def _notify(self, name: str) -> None:
        """Notify the secondaries of a zone, which PowerDNS would do only within xfr-cycle-interval."""
        error = self._server.start('notify', name, self._deadline())
        if error is not None:
            self.log.info('%s: notify %s: %s', self.id, name, error)

    def delete_zone(self, name: str) -> None:
        self._server.delete_zone(name, KINDS, self._deadline())

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        return {name: zone_serial for name, kind, zone_serial in self._listed() if kind in KINDS}, True

    def list_zones(self) -> list[str]:
        return sorted(name for name, _, _ in self._listed())

    def ping(self) -> None:
        self._server.check_identity(self._deadline())

    def settings(self) -> dict[str, str]:
        """The server's own settings, by name."""
        return self._server.settings(self._deadline())

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        answer = self._server.zone(zone.name, self._deadline(), KINDS if target else (), with_rrsets=True)
        if answer is None:
            return False
        zone.add_pairs(((held_rrset.key, held_rrset.rrset.packed) for held_rrset in self._held(answer, target)
                        if held_rrset.rrset is not None), lenient)
        return True

    def _include_change(self, change: Change) -> bool:
        """Leave out a change of the SOA that would only set the serial back."""
        if change.record.type != 'SOA' or not change.existing or not change.new:
            return True
        old, new = change.existing[0], change.new[0]
        return not (serial.newer(serial_of(old), serial_of(new)) and with_serial(old, serial_of(new)) == new)

    def _apply(self, plan: Plan) -> ApplyResult:
        answer = self._server.zone(plan.zone, self._deadline(), KINDS, with_rrsets=True)
        if answer is None:
            raise _zone_missing(plan.zone)
        soa = f'{plan.zone}\tSOA'
        keys = {soa, *(rrset.key for change in plan.changes for rrset in (*change.existing, *change.new))}
        present = {held_rrset.key: held_rrset for held_rrset in self._held(answer, True, keys)}
        increment = str(answer.get('soa_edit_api')).upper()
        is_incremented = increment in INCREMENTING
        current = present[soa].rrset if soa in present else None
        result = PdnsApply(self, plan, present, soa_to_write(plan, current, is_incremented)).run()
        if result.applied and str(answer['kind']).lower() != 'native':
            self._notify(plan.zone)
        return self._check_serial(plan, result, increment) if result.ok and is_incremented else result

    def _check_serial(self, plan: Plan, result: ApplyResult, increment: str) -> ApplyResult:
        """*result*; a failure if PowerDNS has incremented the serial to an older one than the plan's."""
        soa = plan.desired.get(plan.zone, 'SOA')
        answer = self._server.zone(plan.zone, self._deadline(), KINDS)
        if soa is None or answer is None or serial.at_least(answer['serial'], serial_of(soa)):
            return result
        why = (f"the zone's SOA-EDIT-API is {increment}, which set the serial to {answer['serial']} instead of"
               f' {serial_of(soa)}; on its host: pdnsutil set-meta {plan.zone.rstrip(".")} SOA-EDIT-API OFF')
        return ApplyResult(max(result.applied - 1, 0), 1, 0, (why,))

    def patch(self, zone: str, entries: Sequence[Entry]) -> PdnsAnswer:
        """Write all *entries*; none, if the answer is a refusal."""
        answer = self._server.ask('PATCH', zone_path(zone), self._deadline(), {'rrsets': entries}, f'change {zone}',
                                  (204, 404, *_REFUSED))
        if answer.status == 404:
            raise _zone_missing(zone)
        return answer

    def most_octets(self) -> int:
        """The size limit of a request."""
        megabytes = self.settings().get('webserver-max-bodysize', '')
        return max(SURE_SIZE, int(int(megabytes) * (1 << 20) * USABLE)) if megabytes.isdecimal() else SURE_SIZE

    def _listed(self) -> Iterator[tuple[str, str, int | None]]:
        return self._server.zones(Deadline(max(self.timeout, LISTING_SECONDS)))

    def _held(self, given: Mapping[str, Any], target: bool, keys: Collection[str] | None = None) -> Iterator[HeldRRset]:
        """The RRsets of a zone, but for types that are left alone."""
        read = to_rdata_or_marked if target else to_rdata
        try:
            with self._server.parsing():
                for shown in given['rrsets']:
                    rtype, ttl, records = str(shown['type']), int(shown['ttl']), shown['records']
                    name = name_of_server(shown['name'])
                    key = f'{name}\t{rtype}'
                    if rtype in TYPES and (keys is None or key in keys):
                        served = {read(rtype, record['content']) for record in records if not record['disabled']}
                        yield HeldRRset(key, RRset(name, rtype, ttl, tuple(sorted(served))) if served else None,
                                        tuple(record['content'] for record in records if record['disabled']))
        except InvalidField as error:
            raise SourceError(source=self.id, why=f'{given.get("name")}: {error}') from error

    def _deadline(self) -> Deadline:
        return Deadline(self.timeout)


def _zone_missing(name: str) -> BackendError:
    return BackendError(why=f'the server does not have the zone {name} any more', reason=Reason.NO_ZONE)


class HeldRRset(NamedTuple):
    """An RRset on the server.

    :ivar rrset: its records that are served; None if all are disabled
    :ivar disabled: the data of its disabled records, which are not served, in the API's form
    """

    key: str
    rrset: RRset | None
    disabled: tuple[str, ...]


class RequestPart(NamedTuple):
    """A change in the API's form; its entries must be sent in one request."""

    change: Change
    entries: tuple[Entry, ...]


def entry(new: RRset, disabled: Sequence[str] = ()) -> Entry:
    """The entry of a request that replaces the RRset of this name and type with *new*."""
    records = [{'content': of_rdata(new.type, data), 'disabled': False} for data in new.rdatas]
    contents = {record['content'] for record in records}
    return {'name': new.name, 'type': new.type, 'ttl': new.ttl, 'changetype': 'REPLACE',
            'records': records + [{'content': content, 'disabled': True} for content in disabled
                                  if content not in contents]}


def announced(desired: Zone) -> RRset | None:
    """The SOA of *desired* with the serial before its own, so that the still empty zone is not taken for complete."""
    soa = desired.get(desired.name, 'SOA')
    return None if soa is None else with_serial(soa, serial_of(soa) - 1)


def soa_to_write(plan: Plan, current: RRset | None, is_incremented: bool) -> RRset | None:
    """The SOA that is sent with the changes of *plan*; None if it is not changed.

    The serial is never decreased: secondaries of this server would not see the change.
    """
    soa = plan.desired.get(plan.zone, 'SOA')
    if soa is not None and any(change.record.type == 'SOA' for change in plan.changes):
        behind = current is not None and serial.newer(serial_of(current), serial_of(soa))
        return with_serial(soa, serial_of(current) + 1) if behind and current is not None else soa
    if current is None or is_incremented or not plan.changes \
            or soa is not None and not serial.newer(serial_of(current), serial_of(soa)):
        return None
    return with_serial(current, serial_of(current) + 1)


class PdnsApply:
    """The application of one plan.

    :param present: the RRsets on the server that the plan changes, by key
    """

    def __init__(self, provider: PdnsProvider, plan: Plan, present: Mapping[str, HeldRRset], soa: RRset | None) -> None:
        self._provider = provider
        self._plan = plan
        self._present = present
        self._soa = soa
        self._planned_soa = sum(change.record.type == 'SOA' for change in plan.changes)
        self._queue: collections.deque[list[RequestPart]] = collections.deque()
        self._applied = self._failed = self._refusals = 0
        self._errors: list[str] = []

    def run(self) -> ApplyResult:
        """Make the changes, and write the SOA last.

        :raises BackendError: when nothing was changed, and not because of a bad record
        """
        self._queue.extend(self._cut(list(self._parts())))
        try:
            while self._queue and self._refusals < MOST_REFUSALS:
                self._send(self._queue.popleft())
        except (BackendError, OSError) as error:
            if not self._applied:
                raise
            self._errors.append(str(error) or 'no answer in time')
        skipped = max(len(self._plan.changes) - self._applied - self._failed, 0)
        if self._queue and self._refusals >= MOST_REFUSALS:
            self._errors.append(f'after {self._refusals} refusals the other changes were not tried')
        return ApplyResult(self._applied, self._failed, skipped, tuple(self._errors))

    def _parts(self) -> Iterator[RequestPart]:
        """All changes but that of the SOA, in the API's form; a change of an RRset that is not as planned fails."""
        for change in self._plan.changes:
            if change.record.type == 'SOA':
                continue
            old, new = ({rrset.key: rrset for rrset in side} for side in (change.existing, change.new))
            if all(self._is_old_or_new(key, old.get(key), new.get(key)) for key in old.keys() | new.keys()):
                gone = [self._removal(rrset) for key, rrset in old.items() if key not in new]
                yield RequestPart(change, (*gone, *(entry(rrset, self._disabled(key)) for key, rrset in new.items())))
            else:
                self._fail(change, 'it was changed by somebody else after the plan was made')

    def _is_old_or_new(self, key: str, old: RRset | None, new: RRset | None) -> bool:
        present = self._present.get(key)
        now = present.rrset.packed if present is not None and present.rrset is not None else None
        return now in (old.packed if old is not None else None, new.packed if new is not None else None)

    def _removal(self, old: RRset) -> Entry:
        disabled = self._disabled(old.key)
        if disabled:  # they belong to somebody else, and stay
            return entry(old._replace(rdatas=()), disabled)
        return {'name': old.name, 'type': old.type, 'changetype': 'DELETE'}

    def _disabled(self, key: str) -> tuple[str, ...]:
        present = self._present.get(key)
        return present.disabled if present is not None else ()

    def _cut(self, parts: list[RequestPart]) -> Iterator[list[RequestPart]]:
        """*parts* divided into requests; one empty list if there are none, for the SOA alone."""
        sizes = [len(json.dumps(part.entries)) + 2 for part in parts]
        most = SURE_SIZE if sum(sizes) <= SURE_SIZE else self._provider.most_octets()
        piece: list[RequestPart] = []
        octets = 0
        for part, size in zip(parts, sizes, strict=True):
            if piece and octets + size > most:
                yield piece
                piece, octets = [], 0
            piece.append(part)
            octets += size
        yield piece

    def _send(self, parts: list[RequestPart]) -> None:
        soa = self._soa if not self._queue and not self._failed else None
        entries = [part_entry for part in parts for part_entry in part.entries]
        if soa is not None:
            entries.append(entry(soa))
        if not entries:
            return
        # PowerDNS processes them in order, and refuses a CNAME beside other data that is deleted later.
        answer = self._provider.patch(self._plan.zone, sorted(entries, key=lambda each: bool(each.get('records'))))
        if answer.status in _REFUSED:
            self._refusals += 1
            self._divide(parts, soa, answer.words)
        else:
            self._applied += len(parts) + (self._planned_soa if soa is not None else 0)

    def _divide(self, parts: list[RequestPart], soa: RRset | None, words: str) -> None:
        """Queue the parts of a refused request again without the bad ones; in halves if these are not known."""
        if soa is not None and (not parts or _named(soa, words)):
            self._soa = None
            self._fail(soa, words)
            self._queue.extend([parts] if parts else [])
            return
        bad = parts if len(parts) == 1 else [
            part for part in parts
            if any(_named(rrset, words) for rrset in (*part.change.existing, *part.change.new))]
        good = [part for part in parts if not any(part is refused for refused in bad)]
        for part in bad:
            self._fail(part.change, words)
        middle = len(parts) // 2
        self._queue.extend(half for half in ([good] if bad else [parts[:middle], parts[middle:]]) if half)

    def _fail(self, what: Change | RRset, why: str) -> None:
        record = what.record if isinstance(what, Change) else what
        self._failed += 1
        self._errors.append(f'{record.name} {record.type}: {why}')


def _named(record: RRset, words: str) -> bool:
    """Whether the error message of a refusal names *record*."""
    name = of_name(record.name)
    return f' {name}/{record.type} ' in words or f' {name} IN {record.type}' in words or f"'{name}'" in words


def of_name(name: str) -> str:
    """*name* in PowerDNS's form."""
    return _ESCAPED.sub(lambda found: found[0] if found[1] in '0123456789.\\' else found[1], name)


def of_rdata(rtype: str, text: str) -> str:
    """*text*, in normal form, in the API's form."""
    if rtype in LOWER:
        return of_name(text)
    if rtype in _BEFORE_LAST:
        return _joined(text, _BEFORE_LAST[rtype])
    return _CONVERTERS[rtype](text) if rtype in _CONVERTERS else text


def to_rdata(rtype: str, text: str) -> str:
    """*text*, in the API's form, in normal form; InvalidField for data that only PowerDNS accepts."""
    if rtype in LOWER:
        text = _SPECIAL.sub(lambda found: found[0] if found[0].startswith('\\') else f'\\{found[0]}', text)
    return normal_rdata(rtype, text)


def to_rdata_or_marked(rtype: str, text: str) -> str:
    """As :func:`to_rdata`; for data without a normal form a text that is different from every normal form."""
    try:
        return to_rdata(rtype, text)
    except InvalidField:
        return f'{" ".join(text.split())} ?'


def _joined(text: str, before: int) -> str:
    *fields, last = text.split(None, before)
    return ' '.join([*fields, last.replace(' ', '')])


def _aaaa(text: str) -> str:
    # PowerDNS itself writes an address that ends with an IPv4 address like that, but does not accept it.
    return ipaddress.IPv6Address(text).packed.hex(':', 2) if '.' in text else text


def _cert(text: str) -> str:
    # PowerDNS accepts only numbers, no mnemonics.
    parsed: Any = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.CERT, text)
    return _joined(f'{int(parsed.certificate_type)} {parsed.key_tag} {int(parsed.algorithm)} {text.split(None, 3)[3]}',
                   3)


def _loc(text: str) -> str:
    # dnspython omits default sizes and precisions (RFC 1876 section 3).
    return text if text.count('m') > 1 else f'{text} 1.00m 10000.00m 10.00m'


def _naptr(text: str) -> str:
    *others, name = text.rsplit(' ', 1)
    return ' '.join([*others, of_name(name)])


def _svcb(text: str) -> str:
    priority, target, *rest = text.split(' ', 2)
    return ' '.join([priority, of_name(target), *(_parameter(*match) for item in rest
                                                  for match in _PARAMETER.findall(item))])


def _parameter(name: str, value: str) -> str:
    if name in _BARE:
        return f'{name}={value}'
    if name not in _KNOWN and not name.startswith('key'):
        name = f'key{int(dns.rdtypes.svcbbase.ParamKey.make(name))}'
    return f'{name}="{value}"' if value else name


_CONVERTERS: dict[str, Callable[[str], str]] = {
    'AAAA': _aaaa, 'CERT': _cert, 'HTTPS': _svcb, 'LOC': _loc, 'NAPTR': _naptr, 'SVCB': _svcb}
