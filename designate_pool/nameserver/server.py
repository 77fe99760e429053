"""The name server as a whole."""

from __future__ import annotations

import dataclasses
import ipaddress
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import dns.exception
import dns.name

import designate_pool
from designate_pool.errors import InvalidField
from designate_pool.model import Endpoint, TsigKey
from designate_pool.nameserver.control import ControlServer
from designate_pool.nameserver.faults import FETCHING, Fault, Faults
from designate_pool.nameserver.refresher import Refresher
from designate_pool.nameserver.responder import Responder
from designate_pool.nameserver.schedule import TaskSchedule
from designate_pool.nameserver.sockets import DnsSockets
from designate_pool.nameserver.zones import ZoneTable, text_of
from designate_pool.protocol import tsig


class NameServer:
    """A secondary that can be started and stopped any number of times.

    :param listen: where it answers DNS; port 0 takes any, and the same again after a stop
    :param control: where its control socket is, on loopback; None for none
    :param secret: what the control socket asks for
    :param state: folder that keeps the zones through a restart; None loses them at each stop
    :param keys: TSIG keys beside those that come with zones
    :param retry: seconds between tries of a failed transfer, at most
    :raises InvalidField: for a control socket without a secret
    """

    def __init__(self, listen: Endpoint, control: Endpoint | None = None, secret: str = '', *,
                 state: pathlib.Path | None = None, keys: Sequence[TsigKey] = (), retry: float = 30.0) -> None:
        self.endpoint = listen
        self.control_endpoint = control
        self.faults = Faults()
        self._zones = ZoneTable(state, tuple(keys))
        self._schedule = TaskSchedule()
        self._refresher = Refresher(self._zones, self.faults, self._schedule, retry=retry)
        self._sockets = DnsSockets(Responder(self._zones, self.faults, self._refresher.refresh).respond, self._schedule)
        self._control = None if control is None else ControlServer(secret, self._verbs())
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
        except BaseException:  # undone and passed on, whatever it is
            self._sockets.stop()
            raise
        self._running = True
        self._schedule.start()
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
        self._schedule.stop()

    def add_zone(self, name: str, primaries: Sequence[Endpoint], key: TsigKey | None = None) -> bool:
        """Hold a zone and fetch it; whether anything changed.

        :raises InvalidField: for a name that is none, or no primaries
        """
        if not primaries:
            raise InvalidField(field='primaries', why='a zone needs at least one')
        zone = self._zones.add(_name(name), tuple(primaries), key)
        if zone is not None:
            self._refresher.refresh(zone)
        return zone is not None

    def delete_zone(self, name: str) -> bool:
        """Hold the zone no longer; whether it was held."""
        return self._zones.delete(_name(name))

    def refresh(self, name: str) -> bool:
        """Ask the zone's primaries for a newer one; whether it is held."""
        zone = self._zones.get(_name(name))
        if zone is not None:
            self._refresher.refresh(zone)
        return zone is not None

    def refetch(self, name: str) -> bool:
        """Fetch the zone anew, whatever serial it has; whether it is held."""
        zone = self._zones.get(_name(name))
        if zone is not None:
            zone.forced = True
            self._refresher.refresh(zone)
        return zone is not None

    def forget_zones(self) -> None:
        """Lose all zones, as in a disaster."""
        self._zones.forget()

    def serial(self, name: str) -> int | None:
        """The serial of the zone that is held, whatever the faults make of it; None before the first transfer."""
        zone = self._zones.get(_name(name))
        return None if zone is None or zone.contents is None else zone.contents.serial

    def list_zones(self) -> list[dict[str, Any]]:
        """What is held: ``{name, serial, primaries, error}`` each."""
        return [{'name': zone.text, 'serial': zone.contents.serial if zone.contents is not None else None,
                 'primaries': [str(primary) for primary in zone.primaries], 'error': zone.error}
                for zone in sorted(self._zones.all(), key=lambda zone: zone.name)]

    def set_fault(self, fault: Fault | str) -> None:
        """Switch a fault on; as text in the form of :meth:`Fault.parse`."""
        self.faults.set(fault if isinstance(fault, Fault) else Fault.parse(fault))

    def clear_faults(self, kind: str | None = None, zone: str | None = None) -> list[Fault]:
        """Switch faults off, and catch up with what was not fetched because of them."""
        gone = self.faults.clear(kind, None if zone is None else text_of(_name(zone)))
        if any(fault.kind in FETCHING for fault in gone):
            for held in self._zones.all():
                self._refresher.refresh(held)
        return gone

    def _verbs(self) -> dict[str, Any]:
        return {
            'ping': lambda request: designate_pool.__version__,
            'add_zone': lambda request: self.add_zone(_text(request, 'name'), _endpoints(request), _key(request)),
            'delete_zone': lambda request: self.delete_zone(_text(request, 'name')),
            'refresh': lambda request: self.refresh(_text(request, 'name')),
            'refetch': lambda request: self.refetch(_text(request, 'name')),
            'list_zones': lambda request: self.list_zones(),
            'forget_zones': lambda request: self.forget_zones(),
            'set_fault': lambda request: self.set_fault(_fault(request)),
            'clear_faults': lambda request: [dataclasses.asdict(fault) for fault in self.clear_faults(
                request.get('kind'), request.get('zone'))],
            'list_faults': lambda request: [dataclasses.asdict(fault) for fault in self.faults.all()],
        }


def _name(text: str) -> dns.name.Name:
    if not isinstance(text, str):
        raise InvalidField(field='name', why=f'{text!r} is not a text')
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
        return [Endpoint(str(ipaddress.ip_address(each['host'])), int(each['port'])) for each in request['primaries']]
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidField(field='primaries', why=f'it must be a list of {{host, port}} ({error})') from error


def _key(request: Mapping[str, Any]) -> TsigKey | None:
    facts = request.get('key')
    if facts is None:
        return None
    try:
        key = TsigKey(facts['name'], facts['algorithm'], facts['secret'])
        tsig.key_from(key)
    except Exception as error:  # dnspython raises many kinds for the parts of a key
        why = f'it must be {{name, algorithm, secret}} ({type(error).__name__})'
        raise InvalidField(field='key', why=why) from error
    return key


def _fault(request: Mapping[str, Any]) -> Fault:
    try:
        zone, count = request.get('zone'), request.get('count')
        return Fault(_text(request, 'kind'), float(request.get('seconds') or 0), None if count is None else int(count),
                     None if zone is None else text_of(_name(zone)))
    except (TypeError, ValueError) as error:
        raise InvalidField(field='fault', why=str(error)) from error
