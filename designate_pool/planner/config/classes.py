"""Objects of the configuration that have a ``class``: import, check of their options, construction."""

from __future__ import annotations

import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from designate_pool.errors import PoolError
from designate_pool.planner.config.secret_values import FileSecrets, Secret, redacted
from designate_pool.planner.config.yaml_reader import YamlErrors, hint
from designate_pool.planner.outputs import OUTPUTS, BaseOutput
from designate_pool.planner.processors import PROCESSORS
from designate_pool.planner.providers.base import BaseProcessor, BaseSource

_OURS = 'designate_pool.planner'
#: Sources and targets by name, imported when needed; any dotted path is allowed as well.
CLASSES: dict[str, str] = {
    'axfr': f'{_OURS}.sources.axfr.AxfrSource',
    'fake': f'{_OURS}.targets.fake.FakeProvider',
    'pool': f'{_OURS}.targets.pool.PoolProvider',
    'powerdns': f'{_OURS}.targets.pdns.PdnsProvider',
    'rfc2136': f'{_OURS}.targets.rfc2136.Rfc2136Provider',
    'yaml': f'{_OURS}.targets.yaml_target.YamlProvider',
    'zonefile': f'{_OURS}.sources.zonefile.ZoneFileSource',
    'octodns_bind.AxfrSource': f'{_OURS}.sources.axfr.AxfrSource',
    'octodns_bind.ZoneFileSource': f'{_OURS}.sources.zonefile.ZoneFileSource',
    'octodns.provider.yaml.YamlProvider': f'{_OURS}.targets.yaml_target.YamlProvider',
}
#: Outputs by octoDNS's class paths.
OCTODNS_OUTPUTS = {
    'octodns.provider.plan.PlanLogger': OUTPUTS['log'], 'octodns.provider.plan.PlanJson': OUTPUTS['json'],
    'octodns.provider.plan.PlanMarkdown': OUTPUTS['markdown'], 'octodns.provider.plan.PlanHtml': OUTPUTS['html'],
}
_UNEXPECTED_ARGUMENT = re.compile(r"unexpected keyword argument '([^']*)'")
_BOOLEANS = {'true': True, 'yes': True, 'on': True, '1': True, 'false': False, 'no': False, 'off': False, '0': False}
_NAMES: dict[Any, str] = {int: 'a whole number', float: 'a number', bool: 'true or false', str: 'a string'}

Options = Mapping[str, Any]


def provider(id: str, word: str, options: Options, mistakes: YamlErrors, place: str) -> BaseSource | None:
    """A source or target; None for an error, which is noted."""
    found: BaseSource | None = _object(
        id, word, options, mistakes, place, CLASSES, lambda cls: issubclass(cls, BaseSource), 'adapt_provider',
        'is neither a source nor a provider')
    return found


def processor(id: str, word: str, options: Options, mistakes: YamlErrors, place: str) -> BaseProcessor | None:
    """A processor; None for an error, which is noted."""
    found: BaseProcessor | None = _object(
        id, word, options, mistakes, place, PROCESSORS, lambda cls: issubclass(cls, BaseProcessor), 'adapt_processor',
        'is no processor')
    return found


def output(id: str, word: str, options: Options, mistakes: YamlErrors, place: str) -> BaseOutput | None:
    """A plan output; None for an error, which is noted."""
    found: BaseOutput | None = _object(
        id, word, options, mistakes, place, {**OUTPUTS, **OCTODNS_OUTPUTS}, lambda cls: issubclass(cls, BaseOutput),
        None, f'is no output of ours; those are {", ".join(OUTPUTS)}')
    return found


def handler(id: str, word: str, options: Options, mistakes: YamlErrors, place: str) -> Any:
    """A secret handler; None for an error, which is noted."""
    return _object(id, word, options, mistakes, place, {'file': FileSecrets},
                   lambda cls: callable(getattr(cls, 'fetch', None)), None, 'is no secret handler: it has no fetch')


def _object(id: str, word: str, options: Options, mistakes: YamlErrors, place: str, known: Mapping[str, str | type],
            is_ours: Callable[[type], bool], adapter: str | None, why_not: str) -> Any:
    """The object of the class *word*, a name in *known* or a dotted path; None for an error, which is noted.

    :param adapter: the function of :mod:`designate_pool.planner.octodns.adapter` for octoDNS's classes, if any
    """
    named = known.get(word, word)
    cls = _class(named, known, mistakes, place) if isinstance(named, str) else named
    if cls is None:
        return None
    if is_ours(cls):
        return _construct(cls, id, options, mistakes, place, lambda kwargs: cls(id, **kwargs))
    if adapter is not None and any(base.__module__.partition('.')[0] == 'octodns' for base in cls.__mro__):
        adapt = getattr(importlib.import_module('designate_pool.planner.octodns.adapter'), adapter)
        return _construct(cls, id, options, mistakes, place, lambda kwargs: adapt(id, cls, kwargs))
    mistakes.note(f'{place}.class', f'{word} {why_not}')
    return None


def _class(path: str, names: Iterable[str], mistakes: YamlErrors, place: str) -> type | None:
    """The class at a dotted path; None if there is none, which is noted."""
    module, dot, name = path.rpartition('.')
    if not dot:
        known = sorted(each for each in names if '.' not in each)
        mistakes.note(f'{place}.class', f'there is no class {path}{hint(path, known)}; '
                                        f'there are {", ".join(known)}, and dotted paths')
        return None
    try:
        found = getattr(importlib.import_module(module), name, None)
    except Exception as error:
        mistakes.note(f'{place}.class', f'{module} cannot be imported ({type(error).__name__}: {error})')
        return None
    if not isinstance(found, type):
        mistakes.note(f'{place}.class', f'there is no class {name} in {module}')
        return None
    return found


def _construct(cls: type, id: str, options: Options, mistakes: YamlErrors, place: str,
               make: Callable[[dict[str, Any]], Any]) -> Any:
    """What *make* makes of *options*, each converted to its type; None for an error, which is noted."""
    before = len(mistakes.lines)
    known = _parameters(cls)
    kwargs = {name: _convert(value, known[name], mistakes, f'{place}.{name}') if name in known else value
              for name, value in options.items()}
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD \
                and name not in options and name not in ('id', 'name'):
            mistakes.note(f'{place}.{name}', 'must be given')
    while True:
        try:
            made = make(kwargs)
        except Exception as error:
            unexpected = _UNEXPECTED_ARGUMENT.search(str(error))
            if unexpected is not None and unexpected[1] in kwargs:
                del kwargs[unexpected[1]]
                mistakes.note(f'{place}.{unexpected[1]}', f'{options_of(cls)} has no such option'
                                                          f'{hint(unexpected[1], known)}')
                continue
            if len(mistakes.lines) == before:
                why = str(error) if isinstance(error, PoolError) else f'{type(error).__name__}: {error}'
                mistakes.note(place, redacted(why, options))
            return None
        return made if len(mistakes.lines) == before else None


def options_of(cls: type) -> str:
    """The name of a class in messages about its options."""
    return next((word for word, path in CLASSES.items() if path == f'{cls.__module__}.{cls.__name__}'), cls.__name__)


def _parameters(cls: type) -> dict[str, tuple[Any, ...]]:
    """The options of a class, and of the base classes that it passes options on to, with their types.

    The types are empty if they are unknown or not plain.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for base in cls.__mro__:
        if '__init__' not in vars(base) or base is object:
            continue
        init = vars(base)['__init__']
        try:
            hints = typing.get_type_hints(init)
        except Exception:  # annotations may name what only type checkers import
            hints = {}
        parameters = list(inspect.signature(init).parameters.values())[2:]
        for each in parameters:
            if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
                found.setdefault(each.name, _plain_types(hints.get(each.name)) or _default_types(each.default))
        if not any(each.kind is each.VAR_KEYWORD for each in parameters):
            break
    return found


def _plain_types(annotation: Any) -> tuple[Any, ...]:
    """The types of an annotation, if all of them are plain."""
    every = typing.get_args(annotation) if isinstance(annotation, types.UnionType) \
        or typing.get_origin(annotation) is typing.Union else (annotation,)
    return every if all(each in _NAMES or each is type(None) for each in every) else ()


def _default_types(default: Any) -> tuple[Any, ...]:
    """The type of a numeric default; other types must be accepted as well, since the annotation is unknown."""
    return (type(default), object) if isinstance(default, (bool, int, float)) else ()


def _convert(value: Any, kinds: tuple[Any, ...], mistakes: YamlErrors, place: str) -> Any:
    """*value* converted to one of *kinds*; a failure is noted.

    Strings are converted to numbers and booleans, since secrets are always strings.
    """
    if not kinds or type(value) in kinds or value is False and type(None) in kinds:
        return value
    if type(value) is int and float in kinds:
        return float(value)
    if isinstance(value, str):
        if str in kinds:
            return str(value)
        for kind in kinds:
            found = _parse(value, kind)
            if found is not None:
                return found
    if object in kinds:
        return str(value) if isinstance(value, Secret) else value
    wanted = ' or '.join(_NAMES[each] for each in kinds if each in _NAMES)
    quotes = ': write it in quotes' if str in kinds and isinstance(value, (int, float, bool)) else ''
    mistakes.note(place, f'must be {wanted}{quotes}')
    return value


def _parse(text: str, kind: Any) -> Any:
    """*text* as a value of *kind*; None if it is none."""
    if kind is bool:
        return _BOOLEANS.get(text.lower())
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            return None
    return None
