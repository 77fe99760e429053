"""The options of a section: made from its settings, and read into them; a wrong value is noted, not raised."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, TypeVar

from oslo_config import cfg, types

from designate_pool.config import values
from designate_pool.config.errors import ConfigErrors

S = TypeVar('S')
#: Advice for a ``$`` that oslo.config cannot resolve.
DOLLAR = "oslo.config reads the $ in it as a reference to another option; write $$ for a $, or file:PATH"
#: oslo.config's options by the types of fields; ``| None`` makes no difference.
_KINDS: dict[str, type[cfg.Opt]] = {
    'bool': cfg.BoolOpt, 'int': cfg.IntOpt, 'float': cfg.FloatOpt, 'str': cfg.StrOpt,
    'tuple[str, ...]': cfg.ListOpt, 'tuple[Network, ...]': cfg.ListOpt, 'tuple[Region, ...]': cfg.ListOpt,
    'tuple[Endpoint, ...]': cfg.StrOpt, 'Lines': cfg.MultiStrOpt}


def options_of(settings: type[Any]) -> list[cfg.Opt]:
    """The options that are fields of *settings*, a class of :mod:`designate_pool.settings`."""
    return [_option(field) for field in dataclasses.fields(settings) if 'help' in field.metadata]


def group_of(settings: type[Any]) -> Any:
    """The section of *settings* for oslo.config; its help is the first paragraph of the docstring."""
    if settings.SECTION == 'DEFAULT':
        return settings.SECTION
    return cfg.OptGroup(settings.SECTION, help=' '.join((settings.__doc__ or '').partition('\n\n')[0].split()))


def _option(field: dataclasses.Field[Any]) -> cfg.Opt:
    limits = dict(field.metadata)
    default = field.default
    if limits.pop('port', None) is not None:
        default = ', '.join(map(str, default)) or None  # type: ignore[arg-type]
    elif isinstance(default, tuple):
        default = list(default)
        if 'choices' in limits:
            limits['item_type'] = types.String(choices=limits.pop('choices'))
    return _KINDS[str(field.type).removesuffix(' | None')](field.name, default=default, **limits)


class Section:
    """The options of one group of *conf*."""

    def __init__(self, conf: cfg.ConfigOpts, group: str, mistakes: ConfigErrors) -> None:
        self._options = conf if group == 'DEFAULT' else conf[group]
        self._mistakes = mistakes
        self.name = group

    def __getitem__(self, option: str) -> Any:
        """The value; None if it is wrong, which is noted."""
        try:
            return self._options[option]
        except cfg.ConfigSourceValueError as error:
            # The text is "Value for option ... from LocationInfo(...) is not valid: why".
            self.wrong(option, re.split(r'is not valid: ', str(error), maxsplit=1)[-1])
        except cfg.Error:
            self.wrong(option, DOLLAR)
        return None

    def read(self, settings: type[S], **other: Any) -> S:
        """All options as *settings*; a wrong one is None, or empty if it is a tuple.

        :param other: values of fields that are no options, or are read in another way
        """
        fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(settings)  # type: ignore[arg-type]
        return settings(**{field.name: self._value(field) for field in fields
                           if 'help' in field.metadata and field.name not in other}, **other)

    def _value(self, field: dataclasses.Field[Any]) -> Any:
        if 'port' in field.metadata:
            return self.converted(field.name, lambda text: values.endpoints(text, field.metadata['port'])) or ()
        if 'secret' in field.metadata:
            return self.converted(field.name, values.secret)
        value = self[field.name]
        return tuple(value or ()) if isinstance(field.default, tuple) else value

    def converted(self, option: str, convert: Any) -> Any:
        """The value that *convert* makes of the text; None if there is none, or it is wrong, which is noted.

        :param convert: raises ValueError
        """
        text = self[option]
        try:
            return None if text is None else convert(text)
        except ValueError as error:
            self.wrong(option, str(error))
            return None

    def wrong(self, option: str, why: str) -> None:
        """Note that the value of an option is wrong."""
        self._mistakes.add(self.name, option, why)
