"""Things of the configuration that have a ``class``: which class that is, and what it takes."""

from __future__ import annotations

import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from designate_pool.errors import PoolError
from designate_pool.planner.config.secret_values import FileSecrets, Secret, without_secrets
from designate_pool.planner.config.yaml_reader import YamlErrors, hint
from designate_pool.planner.outputs import OUTPUTS, BaseOutput
from designate_pool.planner.processors import PROCESSORS
from designate_pool.planner.providers.base import BaseProcessor, BaseSource

_OURS = 'designate_pool.planner'
#: Sources and targets by the user's word, imported when one is wanted; beside them stands every dotted path.
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
#: Outputs by the words of octoDNS.
OCTODNS_OUTPUTS = {
    'octodns.provider.plan.PlanLogger': OUTPUTS['log'], 'octodns.provider.plan.PlanJson': OUTPUTS['json'],
    'octodns.provider.plan.PlanMarkdown': OUTPUTS['markdown'], 'octodns.provider.plan.PlanHtml': OUTPUTS['html'],
}
_UNEXPECTED = re.compile(r"unexpected keyword argument '([^']*)'")
_WORDS = {'true': True, 'yes': True, 'on': True, '1': True, 'false': False, 'no': False, 'off': False, '0': False}
_NAMES: dict[Any, str] = {int: 'a whole number', float: 'a number', bool: 'true or false', str: 'a text'}

Options = Mapping[str, Any]


def provider(id: str, word: str, options: Options, mistakes: YamlErrors, place: str) -> BaseSource | None:
    """A source or target; None when something is wrong with it, which is noted."""
    cls = _class(CLASSES.get(word, word), CLASSES, mistakes, place)
    if cls is None:
        return None
    if issubclass(cls, BaseSource):
        return _made(cls, id, options, mistakes, place, lambda fit: cls(id, **fit))
    if _is_of_octodns(cls):
        from designate_pool.planner.octodns.adapter import adapt_provider
        return _made(cls, id, options, mistakes, place, lambda fit: adapt_provider(id, cls, fit))
    mistakes.note(f'{place}.class', f'{word} is neither a source nor a provider')
    return None


def processor(id: str, word: str, options: Options, mistakes: YamlErrors, place: str) -> BaseProcessor | None:
    """A processor; None when something is wrong with it, which is noted."""
    cls = PROCESSORS[word] if word in PROCESSORS else _class(word, PROCESSORS, mistakes, place)
    if cls is None:
        return None
    if issubclass(cls, BaseProcessor):
        return _made(cls, id, options, mistakes, place, lambda fit: cls(id, **fit))
    if _is_of_octodns(cls):
        from designate_pool.planner.octodns.adapter import adapt_processor
        return _made(cls, id, options, mistakes, place, lambda fit: adapt_processor(id, cls, fit))
    mistakes.note(f'{place}.class', f'{word} is no processor')
    return None


def output(id: str, word: str, options: Options, mistakes: YamlErrors, place: str) -> BaseOutput | None:
    """A plan output; None when something is wrong with it, which is noted."""
    known: dict[str, type] = {**OUTPUTS, **OCTODNS_OUTPUTS}
    cls = known[word] if word in known else _class(word, known, mistakes, place)
    if cls is None:
        return None
    if issubclass(cls, BaseOutput):
        return _made(cls, id, options, mistakes, place, lambda fit: cls(id, **fit))
    mistakes.note(f'{place}.class', f'{word} is no output of ours; those are {", ".join(OUTPUTS)}')
    return None


def handler(id: str, word: str, options: Options, mistakes: YamlErrors, place: str) -> Any:
    """A secret handler; None when something is wrong with it, which is noted."""
    cls = FileSecrets if word == 'file' else _class(word, ('file',), mistakes, place)
    if cls is None:
        return None
    if not callable(getattr(cls, 'fetch', None)):
        mistakes.note(f'{place}.class', f'{word} is no secret handler: it has no fetch')
        return None
    return _made(cls, id, options, mistakes, place, lambda fit: cls(id, **fit))


def _class(path: str, words: Iterable[str], mistakes: YamlErrors, place: str) -> type | None:
    """The class at a dotted path; None when there is none, which is noted."""
    module, dot, name = path.rpartition('.')
    if not dot:
        known = sorted(each for each in words if '.' not in each)
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


def _is_of_octodns(cls: type) -> bool:
    return any(base.__module__.partition('.')[0] == 'octodns' for base in cls.__mro__)


def _made(cls: type, id: str, options: Options, mistakes: YamlErrors, place: str,
          make: Callable[[dict[str, Any]], Any]) -> Any:
    """What *make* makes of *options*, each of the type that it has to be of; None when something is wrong with them."""
    before = len(mistakes.lines)
    known = _parameters(cls)
    fit = {name: _fit(value, known[name], mistakes, f'{place}.{name}') if name in known else value
           for name, value in options.items()}
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD \
                and name not in options and name not in ('id', 'name'):
            mistakes.note(f'{place}.{name}', 'it has to be given')
    while True:
        try:
            made = make(fit)
        except Exception as error:
            unexpected = _UNEXPECTED.search(str(error))
            if unexpected is not None and unexpected[1] in fit:
                del fit[unexpected[1]]
                mistakes.note(f'{place}.{unexpected[1]}', f'{options_of(cls)} has no such option'
                                                          f'{hint(unexpected[1], known)}')
                continue
            if len(mistakes.lines) == before:
                why = str(error) if isinstance(error, PoolError) else f'{type(error).__name__}: {error}'
                mistakes.note(place, without_secrets(why, options))
            return None
        return made if len(mistakes.lines) == before else None


def options_of(cls: type) -> str:
    """What a class is called where its options are spoken of."""
    return next((word for word, path in CLASSES.items() if path == f'{cls.__module__}.{cls.__name__}'), cls.__name__)


def _parameters(cls: type) -> dict[str, tuple[Any, ...]]:
    """The options of a class and of those that it hands options on to, with the types that they may be of.

    No types for those of which they are not known, or more than plain ones.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for base in cls.__mro__:
        if '__init__' not in vars(base) or base is object:
            continue
        init = vars(base)['__init__']
        try:
            hints = typing.get_type_hints(init)
        except Exception:  # annotations of others may name what only type checkers import
            hints = {}
        parameters = list(inspect.signature(init).parameters.values())[2:]
        for each in parameters:
            if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
                found.setdefault(each.name, _plain(hints.get(each.name)) or _of_default(each.default))
        if not any(each.kind is each.VAR_KEYWORD for each in parameters):
            break
    return found


def _plain(annotation: Any) -> tuple[Any, ...]:
    """The types of an annotation, where all of them are plain."""
    every = typing.get_args(annotation) if isinstance(annotation, types.UnionType) \
        or typing.get_origin(annotation) is typing.Union else (annotation,)
    return every if all(each in _NAMES or each is type(None) for each in every) else ()


def _of_default(default: Any) -> tuple[Any, ...]:
    """What a default that is a number tells of the type; that other numbers or none may be given has to be allowed."""
    return (type(default), object) if isinstance(default, (bool, int, float)) else ()


def _fit(value: Any, kinds: tuple[Any, ...], mistakes: YamlErrors, place: str) -> Any:
    """*value* as an option of one of *kinds* has it; what cannot be that is noted.

    Text becomes a number where a number is wanted: what is fetched from elsewhere is always text.
    """
    if not kinds or type(value) in kinds or value is False and type(None) in kinds:
        return value
    if type(value) is int and float in kinds:
        return float(value)
    if isinstance(value, str):
        if str in kinds:
            return str(value)
        for kind in kinds:
            found = _converted(value, kind)
            if found is not None:
                return found
    if object in kinds:
        return str(value) if isinstance(value, Secret) else value
    wanted = ' or '.join(_NAMES[each] for each in kinds if each in _NAMES)
    quotes = ', so write it in quotes' if str in kinds and isinstance(value, (int, float, bool)) else ''
    mistakes.note(place, f'it has to be {wanted}{quotes}')
    return value


def _converted(text: str, kind: Any) -> Any:
    """None where *text* is not of that kind."""
    if kind is bool:
        return _WORDS.get(text.lower())
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            return None
    return None
