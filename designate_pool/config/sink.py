"""``[service:sink]``, and the sections ``[handler:NAME]``."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping

from oslo_config import cfg

from designate_pool.config import process
from designate_pool.config.section import Section
from designate_pool.model import Endpoint

GROUP = cfg.OptGroup('service:sink', help=(
    'designate-pool-sink, which makes records for instances and floating IPs from the notifications of Nova and '
    'Neutron.'))
OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt('enabled_notification_handlers', default=[],
                help='nova_fixed: records for the fixed addresses of instances, from the notifications of Nova; '
                     'neutron_floatingip: for floating IPs that have a port, from those of Neutron. Each has a section '
                     '[handler:NAME].'),
    cfg.StrOpt('listener_pool_name',
               help='Programs with the same name share the notifications. Set it where others, such as ceilometer, '
                    'listen to the same topics: otherwise each notification goes to only one of all these.'),
    process.metrics_option(),
]
_NOVA, _NEUTRON = 'nova_fixed', 'neutron_floatingip'


def _handler_options(exchange: str, formatv4: str, formatv6: str, fields: str) -> list[cfg.Opt]:
    return [
        cfg.ListOpt('notification_topics', default=['notifications'], help='Topics to listen to.'),
        cfg.StrOpt('control_exchange', default=exchange, help='The exchange of these topics.'),
        cfg.StrOpt('zone_id', help='The id of the zone that gets the records.'),
        cfg.MultiStrOpt('formatv4', default=[formatv4],
                        help='The name of the A record of an address; several lines give several records. %(FIELD)s '
                             f'is a field of the notification ({fields}), or zone (with the dot at its end), project, '
                             'ip_address (192-0-2-1), ip_version, octet0 to octet3.'),
        cfg.MultiStrOpt('formatv6', default=[formatv6],
                        help='The same for AAAA records; ip_address is 2001-db8--1, octet0 and so on are the parts '
                             'between colons.'),
    ]


HANDLERS: dict[str, tuple[cfg.OptGroup, list[cfg.Opt]]] = {
    _NOVA: (cfg.OptGroup(f'handler:{_NOVA}', help='Records for the fixed addresses of instances.'),
            _handler_options('nova', '%(hostname)s.%(zone)s', '%(hostname)s.%(zone)s',
                             'hostname, display_name, label of the network')),
    _NEUTRON: (cfg.OptGroup(f'handler:{_NEUTRON}', help='Records for floating IPs that belong to a port.'),
               _handler_options('neutron', '%(octet0)s-%(octet1)s-%(octet2)s-%(octet3)s.%(zone)s',
                                '%(ip_address)s.%(zone)s',
                                'id, description, floating_ip_address')),
}


@dataclasses.dataclass(frozen=True, slots=True)
class HandlerSettings:
    """See :class:`designate_pool.sink.handlers.NotificationHandler`."""

    name: str
    control_exchange: str
    notification_topics: tuple[str, ...]
    zone_id: str
    formatv4: tuple[str, ...]
    formatv6: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SinkSettings:
    """
    :ivar handlers: those that are enabled
    :ivar metrics: addresses that serve metrics; may be empty
    """

    handlers: tuple[HandlerSettings, ...]
    listener_pool_name: str | None
    metrics: tuple[Endpoint, ...]


def read(section: Section, sections: Mapping[str, Section]) -> SinkSettings:
    """:param sections: of the handlers, by their names; read where they are enabled"""
    enabled = dict.fromkeys(section['enabled_notification_handlers'] or ())
    for name in enabled:
        if name not in sections:
            section.wrong('enabled_notification_handlers',
                          f'there is no handler {name}, only {" and ".join(sorted(sections))}')
    return SinkSettings(tuple(_read_handler(name, sections[name]) for name in enabled if name in sections),
                        section['listener_pool_name'], process.read_metrics(section))


def _read_handler(name: str, section: Section) -> HandlerSettings:
    zone_id = section['zone_id']
    try:
        uuid.UUID(zone_id or '')
    except ValueError:
        section.wrong('zone_id', 'the id of a zone is needed')
    return HandlerSettings(name, section['control_exchange'], tuple(section['notification_topics'] or ()),
                           zone_id or '', _formats(section, 'formatv4'), _formats(section, 'formatv6'))


class _AnyField(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return name


def _formats(section: Section, option: str) -> tuple[str, ...]:
    found = tuple(section[option] or ())
    for each in found:
        try:
            each % _AnyField()
        except (TypeError, ValueError):
            section.wrong(option, f'{each!r} is not a format: fields are written %(FIELD)s, and a percent sign %%')
    return found
