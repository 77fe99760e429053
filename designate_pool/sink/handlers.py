"""What the notifications of Nova and Neutron ask for."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from designate_pool.errors import BadInput

#: The notifications after which a resource has addresses, and those after which it has none, of each handler.
CREATIONS = {'nova_fixed': ('compute.instance.create.end',),
             'neutron_floatingip': ('floatingip.create.end', 'floatingip.update.end')}
DELETIONS = {'nova_fixed': ('compute.instance.delete.start', 'compute.instance.delete.end'),
             'neutron_floatingip': ('floatingip.delete.start', 'floatingip.delete.end')}
_RESOURCE_TYPES = {'nova_fixed': 'instance', 'neutron_floatingip': 'floatingip'}


@dataclasses.dataclass(frozen=True, slots=True)
class NotificationHandler:
    """One section ``[handler:NAME]``.

    :ivar zone_id: of the zone that gets the records
    :ivar formatv4: the names of an address of IPv4, as formats of ``%``
    """

    name: str
    control_exchange: str
    notification_topics: Sequence[str]
    zone_id: str
    formatv4: Sequence[str]
    formatv6: Sequence[str]

    @property
    def event_types(self) -> tuple[str, ...]:
        return (*CREATIONS[self.name], *DELETIONS[self.name])


class AddressedResource(NamedTuple):
    """A resource with the fields of each of its addresses; without addresses when it is gone.

    :ivar resource: as :meth:`designate_pool.rpc.central.CentralClient.set_resource_records` takes it
    """

    resource: Mapping[str, str]
    addresses: Sequence[Mapping[str, Any]]


def read(handler: NotificationHandler, event_type: str, payload: Any, project: str | None) -> AddressedResource:
    """What a notification says.

    :param project: the name of the project that the notification's context has
    :raises BadInput: when the payload is not that of this type of event
    """
    try:
        given = payload
        if handler.name == 'nova_fixed':
            found, resource_id = given.get('fixed_ips'), given['instance_id']
        else:
            given = payload.get('floatingip', payload)
            resource_id = given['id'] if 'id' in given else payload['floatingip_id']
            found = [{'address': given['floating_ip_address']}] if given.get('fixed_ip_address') else []
        if event_type in DELETIONS[handler.name]:
            found = []
        return AddressedResource(
            {'plugin': handler.name, 'resource_type': _RESOURCE_TYPES[handler.name], 'resource_id': str(resource_id)},
            [{**given, 'project': project, **_address_fields(each)} for each in found])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise BadInput(why=f'{event_type} has no payload as it should ({type(error).__name__}: {error})') from None


def _address_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    address = ipaddress.ip_address(given['address'])
    text = str(given['address'])
    parts = text.split('.') if address.version == 4 else re.split('::|:', text)
    return {**{name: given[name] for name in ('label',) if name in given}, 'address': str(address),
            'ip_version': address.version, 'ip_address': re.sub('[.:]', '-', text),
            **{f'octet{number}': part for number, part in enumerate(parts)}}


def records(handler: NotificationHandler, found: AddressedResource, zone: str) -> list[dict[str, str]]:
    """The records that a resource gets in the zone with this name, as Central takes them.

    :raises BadInput: when a format wants a field that the notification does not have
    """
    wanted = []
    for fields in found.addresses:
        option, forms, rtype = (('formatv4', handler.formatv4, 'A') if fields['ip_version'] == 4 else
                                ('formatv6', handler.formatv6, 'AAAA'))
        for form in forms:
            try:
                name = form % {**fields, 'zone': zone}
            except KeyError as error:
                raise BadInput(why=f'[handler:{handler.name}] {option}: the notification has no field '
                                   f'{error.args[0]}') from None
            wanted.append({'name': name, 'type': rtype, 'data': fields['address']})
    return wanted
