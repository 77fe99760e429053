"""What notifications ask for: the base of all handlers, and those for Nova and Neutron."""

from __future__ import annotations

import abc
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from designate_pool.errors import BadInput
from designate_pool.settings import AddressSettings


class ResourceRecords(NamedTuple):
    """What a resource has from a notification on; no records when it is gone.

    :ivar zone_id: of the zone that has the records; the resource has none in other zones then
    :ivar records: mappings with ``name`` (with the dot at its end), ``type`` and ``data``
    """

    resource_type: str
    resource_id: str
    zone_id: str
    records: Sequence[Mapping[str, str]] = ()


class NotificationHandler(abc.ABC):
    """Says what records a notification asks for.  It is called from several threads, and for some notifications twice.

    :ivar name: of its section, ``[handler:NAME]``
    :ivar options: the lines of that section by option, each with all its values in their order
    :ivar zone_name: the name of a zone, by its id
    """

    def __init__(self, name: str, options: Mapping[str, Sequence[str]], zone_name: Callable[[str], str]) -> None:
        self.name = name
        self.options = options
        self.zone_name = zone_name

    @abc.abstractmethod
    def get_exchange_topics(self) -> tuple[str, Sequence[str]]:
        """The exchange, and the topics to listen to."""

    @abc.abstractmethod
    def get_event_types(self) -> Sequence[str]:
        """The types of the events that it handles."""

    @abc.abstractmethod
    def process_notification(self, context: Mapping[str, Any], event_type: str,
                             payload: Any) -> Iterable[ResourceRecords]:
        """The records that a resource has after the event, in each domain.

        :raises BadInput: when the notification cannot be handled, however often it comes; other errors of the project
            (:class:`designate_pool.errors.PoolError`) with a code of 500 and above have it come again, some times
        """


class AddressHandler(NotificationHandler):
    """Gives each address of a resource the names that formats say, after *creations* and until *deletions*."""

    creations: ClassVar[tuple[str, ...]]
    deletions: ClassVar[tuple[str, ...]]
    resource_type: ClassVar[str]

    def __init__(self, settings: AddressSettings, zone_name: Callable[[str], str]) -> None:
        super().__init__(settings.name, {}, zone_name)
        self._settings = settings

    def get_exchange_topics(self) -> tuple[str, Sequence[str]]:
        return self._settings.control_exchange, self._settings.notification_topics

    def get_event_types(self) -> Sequence[str]:
        return *self.creations, *self.deletions

    def process_notification(self, context: Mapping[str, Any], event_type: str,
                             payload: Any) -> Iterable[ResourceRecords]:
        try:
            resource_id, fields, addresses = self._read(payload)
            records = [] if event_type in self.deletions else [
                {**fields, 'project': context.get('project_name'), **_address_fields(address)} for address in addresses]
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise BadInput(
                why=f'{event_type} has no payload as it should ({type(error).__name__}: {error})') from None
        zone_id = self._settings.zone_id
        yield ResourceRecords(self.resource_type, resource_id, zone_id,
                              self._records(records, self.zone_name(zone_id)) if records else ())

    @abc.abstractmethod
    def _read(self, payload: Any) -> tuple[str, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
        """The id of the resource, the fields that formats may name, and its addresses."""

    def _records(self, addresses: Iterable[Mapping[str, Any]], zone: str) -> list[dict[str, str]]:
        """The records of addresses; BadInput when a format wants a field that the notification does not have."""
        records = []
        for fields in addresses:
            option, forms, rtype = (('formatv4', self._settings.formatv4, 'A') if fields['ip_version'] == 4 else
                                    ('formatv6', self._settings.formatv6, 'AAAA'))
            for form in forms:
                try:
                    name = form % {**fields, 'zone': zone}
                except KeyError as error:
                    raise BadInput(why=f'{option}: the notification has no field {error.args[0]}') from None
                records.append({'name': name, 'type': rtype, 'data': fields['address']})
        return records


class NovaFixedHandler(AddressHandler):
    creations = 'compute.instance.create.end',
    deletions = 'compute.instance.delete.start', 'compute.instance.delete.end'
    resource_type = 'instance'

    def _read(self, payload: Any) -> tuple[str, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
        return str(payload['instance_id']), payload, payload.get('fixed_ips') or ()


class NeutronFloatingIpHandler(AddressHandler):
    creations = 'floatingip.create.end', 'floatingip.update.end'
    deletions = 'floatingip.delete.start', 'floatingip.delete.end'
    resource_type = 'floatingip'

    def _read(self, payload: Any) -> tuple[str, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
        floating_ip = payload.get('floatingip', payload)
        resource_id = floating_ip['id'] if 'id' in floating_ip else payload['floatingip_id']
        addresses = [{'address': floating_ip['floating_ip_address']}] if floating_ip.get('fixed_ip_address') else []
        return str(resource_id), floating_ip, addresses


#: By the names of their sections.
ADDRESS_HANDLERS: dict[str, type[AddressHandler]] = {
    'nova_fixed': NovaFixedHandler, 'neutron_floatingip': NeutronFloatingIpHandler}


def _address_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    address = ipaddress.ip_address(given['address'])
    text = str(given['address'])
    parts = text.split('.') if address.version == 4 else re.split('::|:', text)
    return {**{name: given[name] for name in ('label',) if name in given}, 'address': str(address),
            'ip_version': address.version, 'ip_address': re.sub('[.:]', '-', text),
            **{f'octet{number}': part for number, part in enumerate(parts)}}
