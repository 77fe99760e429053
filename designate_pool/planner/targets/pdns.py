"""PowerDNS Authoritative as a primary that is filled through its HTTP API.

The invariant: a zone never has a serial of ours without having all that belongs to it.  A zone is made with the serial
before ours; all changes go in one request, which PowerDNS carries out whole or not at all, and ours with them; where
they do not fit into one, or a record is refused, the SOA goes with the last request, and only if all else went.

PowerDNS says no to a whole request for one bad record, so that one is looked for, by its name in the words of the
refusal and by halving, and the others go without it.

Records that are disabled are not served, so they are not there for a plan; they and comments are kept when the RRset is
changed.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import dns.exception
import dns.name

from designate_pool import serial
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, InvalidField, SourceError
from designate_pool.model import Reason
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import ServerProvider
from designate_pool.planner.targets import pdns_rdata
from designate_pool.planner.targets.pdns_apply import (SURE_SIZE, Entry, HeldRRset, PdnsApply, announced, entry, held,
                                                       soa_to_write)
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.powerdns import PdnsAnswer, PdnsApi, PdnsServer, absolute, api_id, api_text
from designate_pool.protocol.soa_rdata import serial_of, with_serial

#: What the option *kind* may be, and what the API calls it in every version.
KINDS = {'native': 'Native', 'master': 'Master', 'primary': 'Master'}

#: The words for SOA-EDIT-API that have PowerDNS count the serial up; any other leaves it as it is given.
COUNTING = frozenset({'DEFAULT', 'INCREASE', 'EPOCH', 'SOA-EDIT', 'SOA-EDIT-INCREASE'})

#: Seconds for the list of all zones, of which there may be a million.
LISTING_SECONDS = 120.0
#: What is left of ``webserver-max-bodysize`` for the head of the request, and what it counts otherwise than we do.
USABLE = 0.9


class PdnsProvider(ServerProvider):
    """A PowerDNS Authoritative Server.

    :param api_url: where its API is, without ``/api/v1``; made of *host* and *port* when not given
    :param api_key: the ``api-key`` of its ``pdns.conf``
    :param server_id: its id in the API
    :param ca_file: certificates that the one of an ``https`` URL has to descend from; the system's when not given
    :param timeout: seconds for one request
    :param kind: of zones that are made: ``Native``, or ``Master`` (``Primary``) for those with secondaries of their own
    :param soa_edit_api: how PowerDNS counts up the serial of a zone that is made; not at all where the SOA is given,
        ``DEFAULT`` where it is not, unless something else is said
    :param options: of :class:`~designate_pool.planner.providers.base.BaseProvider`
    :raises InvalidField: for values that cannot be used
    """

    SUPPORTS = pdns_rdata.TYPES
    SUPPORTS_SOA = True

    def __init__(self, id: str, api_key: str, api_url: str | None = None, host: str | None = None, port: int = 8081,
                 server_id: str = 'localhost', ca_file: str | None = None, timeout: float = 10.0, kind: str = 'Native',
                 soa_edit_api: str | None = None, **options: Any) -> None:
        super().__init__(id, **options)
        if not api_url and not host:
            raise InvalidField(field='api_url', why='it must be given, or host')
        if not api_key:
            raise InvalidField(field='api_key', why='it must be given')
        if kind.lower() not in KINDS:
            raise InvalidField(field='kind', why=f"'{kind}' is none of Native, Master, Primary")
        shown = f'[{host}]' if host and ':' in host else host
        self.timeout = timeout
        self._server = PdnsServer(PdnsApi(api_url or f'http://{shown}:{port}', api_key, ca_file), server_id)
        self._kind = KINDS[kind.lower()]
        self._soa_edit_api = soa_edit_api
        # With SQLite a fourth of the deletes that meet another one fail.
        self._one_delete = threading.Lock()

    def create_zone(self, desired: Zone) -> None:
        rrsets = [entry(each) for each in (announced(desired), desired.root_ns) if each is not None]
        given = desired.get(desired.name, 'SOA') is not None
        counting = self._soa_edit_api if self._soa_edit_api is not None else '' if given else 'DEFAULT'
        answer = self._ask('POST', '/zones?rrsets=false', {
            'name': api_text(_parsed(desired.name)), 'kind': self._kind, 'nameservers': [], 'soa_edit_api': counting,
            'rrsets': rrsets})
        if answer.status == 409:
            if self._read(desired.name, '?rrsets=false') is None:
                raise BackendError(why=f'create {desired.name}: it was there, and was deleted meanwhile')
        elif answer.status != 201:
            raise self._server.trouble(f'create {desired.name}', answer)

    def delete_zone(self, name: str) -> None:
        if self._read(name, '?rrsets=false') is None:
            return
        deadline = Deadline(self.timeout)
        if not self._one_delete.acquire(timeout=deadline.left()):
            raise TimeoutError
        try:
            answer = self._server.ask('DELETE', f'/zones/{api_id(_parsed(name))}', deadline)
        finally:
            self._one_delete.release()
        if answer.status not in (204, 404):
            raise self._server.trouble(f'delete {name}', answer)

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        return {name: found for name, kind, found in self._listed() if kind.lower() in KINDS}, True

    def list_zones(self) -> list[str]:
        return sorted(name for name, _, _ in self._listed())

    def ping(self) -> None:
        self._server.greet(Deadline(self.timeout))

    def settings(self) -> dict[str, str]:
        """The server's own settings, by name."""
        answer = self._ask('GET', '/config')
        if answer.status != 200:
            raise self._server.trouble('read the settings', answer)
        try:
            return {str(each['name']): str(each['value']) for each in answer.json}
        except (TypeError, KeyError) as error:
            raise self._server.stranger() from error

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        given = self._read(zone.name, any_kind=not target)
        if given is None:
            return False
        found = [each.rrset for each in self._held(given, target) if each.rrset is not None]
        if len(zone):
            for into in (zone.copy(), zone):  # all of it, or an error and nothing
                for each in found:
                    into.add_record(each, lenient=lenient)
        else:
            zone.fill(((each.key, each.packed) for each in found), lenient=lenient)
        return True

    def _include_change(self, change: Change) -> bool:
        """All but a SOA that would do nothing but wind the serial back."""
        if change.record.type != 'SOA' or not change.existing or not change.new:
            return True
        old, new = change.existing[0], change.new[0]
        return not (serial.newer(serial_of(old), serial_of(new)) and with_serial(old, serial_of(new)) == new)

    def _apply(self, plan: Plan) -> ApplyResult:
        given = self._read(plan.zone)
        if given is None:
            raise BackendError(why=f'{plan.zone} is not there any more', reason=Reason.NO_ZONE)
        soa = f'{plan.zone}\tSOA'
        keys = {soa, *(each.key for change in plan.changes for each in (*change.existing, *change.new))}
        there = {each.key: each for each in self._held(given, True, keys)}
        counting = str(given.get('soa_edit_api')).upper()
        counted = counting in COUNTING
        current = there[soa].rrset if soa in there else None
        result = PdnsApply(plan, there, soa_to_write(plan, current, counted),
                           lambda entries: self._patch(plan.zone, entries), self._most_octets).run()
        if result.applied and str(given['kind']).lower() != 'native':
            self._notify(plan.zone)
        return self._checked(plan, result, counting) if result.ok and counted else result

    def _notify(self, zone: str) -> None:
        """Have the zone's own secondaries told now; PowerDNS would do it within ``xfr-cycle-interval``."""
        try:
            answer = self._ask('PUT', f'/zones/{api_id(_parsed(zone))}/notify')
            said = None if answer.status == 200 else answer.words
        except (BackendError, OSError) as error:
            said = str(error) or type(error).__name__
        if said is not None:
            self.log.info('%s: notify %s: %s', self.id, zone, said)

    def _checked(self, plan: Plan, result: ApplyResult, counting: str) -> ApplyResult:
        """*result*, unless PowerDNS counts the serial in such a way that ours is never reached."""
        wanted = plan.desired.get(plan.zone, 'SOA')
        given = self._read(plan.zone, '?rrsets=false')
        if wanted is None or given is None or serial.at_least(given['serial'], serial_of(wanted)):
            return result
        why = (f"the zone's SOA-EDIT-API is {counting}, which made the serial {given['serial']} of"
               f' {serial_of(wanted)}; on its host: pdnsutil set-meta {plan.zone.rstrip(".")} SOA-EDIT-API OFF')
        return ApplyResult(max(result.applied - 1, 0), 1, 0, (why,))

    def _patch(self, zone: str, entries: Sequence[Entry]) -> PdnsAnswer:
        """Have all *entries* made; or none, when the answer is a refusal."""
        answer = self._ask('PATCH', f'/zones/{api_id(_parsed(zone))}', {'rrsets': entries})
        if answer.status == 404:
            raise BackendError(why=f'{zone} is not there any more', reason=Reason.NO_ZONE)
        if answer.status not in (204, 413, 422):
            raise self._server.trouble(f'change {zone}', answer)
        return answer

    def _most_octets(self) -> int:
        megabytes = self.settings().get('webserver-max-bodysize', '')
        return max(SURE_SIZE, int(int(megabytes) * (1 << 20) * USABLE)) if megabytes.isdecimal() else SURE_SIZE

    def _listed(self) -> Iterator[tuple[str, str, int]]:
        answer = self._ask('GET', '/zones?dnssec=false', seconds=max(self.timeout, LISTING_SECONDS))
        if answer.status != 200:
            raise self._server.trouble('list', answer)
        try:
            for zone in answer.json:
                yield absolute(zone['name']), str(zone['kind']), int(zone['serial'])
        except (TypeError, KeyError, ValueError, AttributeError, dns.exception.DNSException) as error:
            raise self._server.stranger() from error

    def _read(self, name: str, query: str = '', any_kind: bool = False) -> dict[str, Any] | None:
        """The zone as the API has it; None when there is none.

        :raises BackendRefused: for a zone that is not there to be filled, unless *any_kind* will do
        """
        answer = self._ask('GET', f'/zones/{api_id(_parsed(name))}{query}')
        if answer.status == 404:
            self.ping()  # A wrong server_id or api_url is answered with 404 too.
            return None
        if answer.status != 200:
            raise self._server.trouble(f'read {name}', answer)
        if not isinstance(answer.json, dict) or not isinstance(answer.json.get('serial'), int):
            raise self._server.stranger()
        kind = str(answer.json.get('kind'))
        if kind.lower() not in KINDS and not any_kind:
            raise BackendRefused(why=f"{name} is there already, as a {kind} zone: take it away with 'pdnsutil"
                                     " delete-zone' if it may go")
        return answer.json

    def _held(self, given: Mapping[str, Any], target: bool, keys: Collection[str] | None = None) -> Iterator[HeldRRset]:
        """The RRsets of a zone; those of types that are left alone are left out."""
        try:
            yield from held(given['rrsets'], pdns_rdata.legible if target else pdns_rdata.to_rdata, keys)
        except InvalidField as error:
            raise SourceError(source=self.id, why=f'{given.get("name")}: {error}') from error
        except (TypeError, KeyError, ValueError, AttributeError, dns.exception.DNSException) as error:
            raise self._server.stranger() from error

    def _ask(self, verb: str, path: str, body: object = None, seconds: float | None = None) -> PdnsAnswer:
        return self._server.ask(verb, path, Deadline(self.timeout if seconds is None else seconds), body)


def _parsed(name: str) -> dns.name.Name:
    try:
        return dns.name.from_text(name)
    except (dns.exception.DNSException, ValueError) as error:
        raise BackendRefused(why=f'{name!r} is not a domain name ({error})') from error
