"""``[service:sink]``, and the sections ``[handler:NAME]``."""

from __future__ import annotations

import importlib.metadata
import uuid
from collections.abc import Callable, Mapping, Sequence

from designate_pool.config.errors import ConfigErrors, hint
from designate_pool.config.section import Section
from designate_pool.settings import AddressSettings, NeutronFloatingIpSettings, NovaSettings, SinkSettings

#: The settings of our handlers, by their names.
HANDLERS: dict[str, type[AddressSettings]] = {'nova_fixed': NovaSettings,
                                              'neutron_floatingip': NeutronFloatingIpSettings}
#: The entry points of handlers that others have written; Designate's name for them.
NAMESPACE = 'designate.notification.handler'


def others() -> dict[str, importlib.metadata.EntryPoint]:
    """The handlers of others that are installed, by their names."""
    return {entry_point.name: entry_point for entry_point in importlib.metadata.entry_points(group=NAMESPACE)
            if entry_point.name not in HANDLERS}


def read(section: Section, sections: Mapping[str, Section],
         options: Callable[[str], Mapping[str, Sequence[str]]]) -> SinkSettings:
    """Whether handlers of others are installed is no mistake of the file: only the sink needs them, see
    :func:`check_installed`.

    :param sections: of our handlers, by their names; read where they are enabled
    :param options: those of a section whose options are not known beforehand
    """
    enabled = dict.fromkeys(section['enabled_notification_handlers'] or ())
    installed = others() if enabled.keys() - sections.keys() else {}
    return section.read(
        SinkSettings,
        handlers=tuple(_read_handler(HANDLERS[name], sections[name]) for name in enabled if name in HANDLERS),
        others={name: options(f'handler:{name}') for name in enabled if name in installed},
        missing=tuple(name for name in enabled if name not in sections and name not in installed))


def check_installed(settings: SinkSettings) -> None:
    """Raise BadConfiguration, with each of them, when enabled handlers are not installed."""
    mistakes = ConfigErrors()
    for name in settings.missing:
        names = sorted({*HANDLERS, *others()})
        mistakes.add(SinkSettings.SECTION, 'enabled_notification_handlers',
                     f'there is no handler {name}, only {", ".join(names)}{hint(name, names)}')
    mistakes.raise_if_any()


def _read_handler(kind: type[AddressSettings], section: Section) -> AddressSettings:
    settings = section.read(kind)
    try:
        uuid.UUID(settings.zone_id or '')
    except ValueError:
        section.wrong('zone_id', 'the id of a zone is needed')
    for option in ('formatv4', 'formatv6'):
        for form in getattr(settings, option):
            try:
                form % _AnyField()
            except (TypeError, ValueError):
                section.wrong(option, f'{form!r} is not a format: fields are written %(FIELD)s, and a percent sign %%')
    return settings


class _AnyField(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return name
