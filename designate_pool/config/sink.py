"""``[service:sink]``, and the sections ``[handler:NAME]``."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import uuid
from collections.abc import Callable, Mapping, Sequence

from oslo_config import cfg

from designate_pool.config import process
from designate_pool.config.errors import ConfigErrors, hint
from designate_pool.config.section import Section
from designate_pool.model import Endpoint

GROUP = cfg.OptGroup('service:sink', help=(
    'designate-pool-sink, which makes records for instances and floating IPs from the notifications of Nova and '
    'Neutron.'))
OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt('enabled_notification_handlers', default=[],
                help='nova_fixed: records for the fixed addresses of instances, from the notifications of Nova; '
                     'neutron_floatingip: for floating IPs that have a port, from those of Neutron; or the name of an '
                     'entry point of designate.notification.handler. Each has a section [handler:NAME].'),
    cfg.IntOpt('workers', default=1, min=1, max=100,
               help='Listeners, each with a connection to the broker and threads of its own. They are in one process.'),
    cfg.IntOpt('threads', default=64, min=1, max=10000,
               help='Notifications that a listener acts on at a time.'),
    cfg.StrOpt('listener_pool_name',
               help='Programs with the same name share the notifications. Set it where others, such as ceilometer, '
                    'listen to the same topics: otherwise each notification goes to only one of all these.'),
    process.metrics_option(),
]
_NOVA, _NEUTRON = 'nova_fixed', 'neutron_floatingip'
#: The entry points of handlers that others have written; Designate's name for them.
NAMESPACE = 'designate.notification.handler'


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
        cfg.MultiStrOpt('format', deprecated_for_removal=True, deprecated_reason='formatv4 and formatv6 replace it',
                        help='Without effect, as in Designate since it has formatv4 and formatv6. The log says so.'),
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
    """See :class:`designate_pool.sink.handlers.AddressSettings`."""

    name: str
    control_exchange: str
    notification_topics: tuple[str, ...]
    zone_id: str
    formatv4: tuple[str, ...]
    formatv6: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SinkSettings:
    """
    :ivar handlers: those of ours that are enabled
    :ivar others: the options of those of others that are enabled, by the handler's name
    :ivar missing: those that are enabled and not installed here
    :ivar without_effect: sections that have the option ``format``
    :ivar metrics: addresses that serve metrics; may be empty
    """

    handlers: tuple[HandlerSettings, ...]
    listener_pool_name: str | None
    metrics: tuple[Endpoint, ...]
    others: Mapping[str, Mapping[str, Sequence[str]]]
    missing: tuple[str, ...]
    without_effect: tuple[str, ...]
    workers: int
    threads: int


def others() -> dict[str, importlib.metadata.EntryPoint]:
    """The handlers of others that are installed, by their names."""
    return {each.name: each for each in importlib.metadata.entry_points(group=NAMESPACE) if each.name not in HANDLERS}


def read(section: Section, sections: Mapping[str, Section],
         options: Callable[[str], Mapping[str, Sequence[str]]]) -> SinkSettings:
    """Whether handlers of others are installed is no mistake of the file: only the sink needs them, see
    :func:`check_installed`.

    :param sections: of our handlers, by their names; read where they are enabled
    :param options: those of a section whose options are not known beforehand
    """
    enabled = dict.fromkeys(section['enabled_notification_handlers'] or ())
    installed = others() if enabled.keys() - sections.keys() else {}
    ours = [name for name in enabled if name in sections]
    return SinkSettings(tuple(_read_handler(name, sections[name]) for name in ours), section['listener_pool_name'],
                        process.read_metrics(section),
                        {name: options(f'handler:{name}') for name in enabled if name in installed},
                        tuple(name for name in enabled if name not in sections and name not in installed),
                        tuple(name for name in ours if sections[name]['format']), section['workers'] or 1,
                        section['threads'] or 1)


def check_installed(settings: SinkSettings) -> None:
    """
    :raises BadConfiguration: when a handler that is enabled is not installed
    """
    mistakes = ConfigErrors()
    for name in settings.missing:
        known = sorted({*HANDLERS, *others()})
        mistakes.add(GROUP.name, 'enabled_notification_handlers',
                     f'there is no handler {name}, only {", ".join(known)}{hint(name, known)}')
    mistakes.raise_if_any()


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
