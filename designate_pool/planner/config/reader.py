"""The configuration file: YAML with the keys of octoDNS.

Every key is supported, or refused with the reason; top-level keys that begin with ``x-``, ``_`` or ``.`` are for
anchors, and ignored.
"""

from __future__ import annotations

import datetime
import importlib
import inspect
import os
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from designate_pool.errors import InvalidField, PoolError
from designate_pool.planner.config.yaml_file import FileSecrets, Secret, Secrets, YamlErrors, hint, load, redacted
from designate_pool.planner.outputs import OUTPUTS, BaseOutput, LogOutput
from designate_pool.planner.plan import policy
from designate_pool.planner.processors import PROCESSORS
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.setup import Output, Setup, ZoneSetting
from designate_pool.planner.targets.pool import PoolProvider
from designate_pool.protocol.names_and_rdata import normal_name

TOP = ('manager', 'providers', 'processors', 'zones', 'secret_handlers', 'validators')
MANAGER = ('max_workers', 'processors', 'post_processors', 'plan_outputs', 'policy', 'plan_lifetime', 'plans',
           'include_meta', 'enable_checksum', 'auto_arpa', 'validators')
ZONE = ('sources', 'targets', 'processors', 'lenient', 'alias', 'update_pcent_threshold', 'delete_pcent_threshold',
        'policy', 'always-dry-run', 'ignore_subzone_adds', 'glob', 'regex', 'validators')
#: Options of targets that are fractions.
THRESHOLDS = ('update_pcent_threshold', 'delete_pcent_threshold')
#: Keys of octoDNS that are not supported, with the reason; false or empty values are accepted.
REFUSED = {
    'enable_checksum': 'plans are not applied by a checksum here; keep the plan in a store, and apply it by its id',
    'auto_arpa': 'zones below arpa. are not made from others here; write them, or have octoDNS dump them',
    'validators': "octoDNS's validators are not known here; records are always checked, unless the zone is lenient",
}
#: The processor of octoDNS's ``include_meta``.
META = 'octodns.processor.meta.MetaProcessor'
META_OPTIONS = {'record_name': 'octodns-meta', 'include_time': False, 'include_provider': True}

Item = TypeVar('Item')
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


def read(path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ) -> Setup:
    """The setup of the file at *path*.  No server is contacted.

    :raises BadConfiguration: with every mistake of the file, and its place
    """
    document = load(path)
    mistakes = YamlErrors()
    setup = _Reader(mistakes, environ).setup(document)
    mistakes.raise_if_any()
    return setup


class _Reader:
    """Reads one file, section by section, and notes its mistakes."""

    def __init__(self, mistakes: YamlErrors, environ: Mapping[str, str]) -> None:
        self._mistakes = mistakes
        self._note = mistakes.note
        self._secrets = Secrets(environ, mistakes.note)
        self._policies: dict[str, tuple[str, ...]] = {}
        self._providers: Mapping[str, BaseSource | None] = {}
        self._processors: Mapping[str, BaseProcessor | None] = {}

    def setup(self, found: Mapping[str, Any]) -> Setup:
        self._check_keys('', {key: value for key, value in found.items() if not str(key).startswith(('x-', '_', '.'))},
                         TOP)
        manager = self._mapping('manager', found.get('manager'))
        self._check_keys('manager.', manager, MANAGER)
        self._secrets.handlers.update(present(self._objects('secret_handlers', found.get('secret_handlers'),
                                                            handler)))
        self._providers = self._objects('providers', found.get('providers'), provider)
        self._processors = self._objects('processors', found.get('processors'), processor)
        outputs: Mapping[str, Output | None] = self._objects('manager.plan_outputs', manager.get('plan_outputs'),
                                                             output) or {'log': LogOutput('log')}
        last = self._ids('manager.post_processors', manager.get('post_processors'), self._processors, 'processor')
        if self._boolean('manager.include_meta', manager.get('include_meta')):
            last = (*last, *self._meta_processor())
        zones = self._zones(self._mapping('zones', found.get('zones')))
        return Setup(
            zones=zones, providers=present(self._providers), processors=present(self._processors),
            outputs=list(present(outputs).values()), last_processors=last,
            first_processors=self._ids('manager.processors', manager.get('processors'), self._processors,
                                       'processor'),
            policy=self._policy('manager.policy', manager.get('policy')), target_policies=self._policies,
            max_workers=self._number('manager.max_workers', manager.get('max_workers'), 1),
            plan_lifetime=datetime.timedelta(
                seconds=self._number('manager.plan_lifetime', manager.get('plan_lifetime'), 86400)),
            plans=self._text('manager.plans', manager.get('plans')))

    def _objects(self, place: str, found: Any,
                 make: Callable[[str, str, Mapping[str, Any], YamlErrors, str],
                                Item | None]) -> dict[str, Item | None]:
        """The objects of a section, by id; None for an error, which is noted."""
        made: dict[str, Item | None] = {}
        for id, settings in self._mapping(place, found).items():
            at = f'{place}.{id}'
            options = dict(self._mapping(at, settings))
            word = options.pop('class', None)
            if make is provider and 'policy' in options:
                self._policies[id] = self._policy(f'{at}.policy', options.pop('policy'))
            if not isinstance(word, str):
                self._note(f'{at}.class', 'must be given, as a string')
                made[id] = None
            else:
                options = self._secrets.resolved(options, at)
                made[id] = item = make(id, word, options, self._mistakes, at)
                if isinstance(item, BaseProvider):
                    for key in THRESHOLDS:
                        self._fraction(f'{at}.{key}', getattr(item, key))
        return made

    def _meta_processor(self) -> tuple[str, ...]:
        if 'meta' in self._processors:
            self._note('manager.include_meta', "a processor 'meta' is there already, and this would be another")
            return ()
        made = processor('meta', META, META_OPTIONS, self._mistakes, 'manager.include_meta')
        self._processors = {**self._processors, 'meta': made}
        return ('meta',)

    def _zones(self, found: Mapping[str, Any]) -> dict[str, ZoneSetting]:
        if not found:
            self._note('zones', 'must have at least one')
        zones: dict[str, ZoneSetting] = {}
        for written, options in found.items():
            place = f'zones.{written}'
            try:
                name = written if written.startswith('*') else normal_name(written)
            except InvalidField as error:
                self._note(place, str(error))
                continue
            if name in zones:
                self._note(place, f'{name} is there twice')
            zones[name] = self._zone(place, name, self._mapping(place, options))
        is_open = any(name.startswith('*') for name in zones)
        for name, zone in zones.items():
            if zone.alias in zones and zones[zone.alias].alias is not None:
                self._note(f'zones.{name}.alias', f'{zone.alias} is an alias itself')
            elif zone.alias is not None and zone.alias not in zones and not is_open:
                self._note(f'zones.{name}.alias', f'{zone.alias} is no zone of this file{hint(zone.alias, zones)}')
        return zones

    def _zone(self, place: str, name: str, found: Mapping[str, Any]) -> ZoneSetting:
        self._check_keys(f'{place}.', found, ZONE)
        alias = self._text(f'{place}.alias', found.get('alias'))
        is_many = name.startswith('*')
        for key in ('glob', 'regex'):
            if key in found and not is_many:
                self._note(f'{place}.{key}', 'only a zone that begins with * can have it')
        if alias is not None:
            for key in ('sources', 'ignore_subzone_adds'):
                if key in found:
                    self._note(f'{place}.{key}', 'an alias has its records from the other zone')
            if is_many:
                self._note(f'{place}.alias', 'a zone that begins with * cannot be one')
            alias = self._zone_name(f'{place}.alias', alias)
        else:
            if 'targets' not in found:
                self._note(f'{place}.targets', 'must be given')
        sources = self._ids(f'{place}.sources', found.get('sources'), self._providers, 'provider')
        if 'sources' in found and found['sources'] in (None, []):
            self._note(f'{place}.sources', 'must have at least one')
        elif 'sources' not in found and alias is None:
            sources = self._pool(f'{place}.sources', found.get('targets'))
        return ZoneSetting(
            sources=sources, targets=self._targets(f'{place}.targets', found.get('targets')),
            processors=self._ids(f'{place}.processors', found.get('processors'), self._processors, 'processor'),
            lenient=self._boolean(f'{place}.lenient', found.get('lenient')), alias=alias,
            update_pcent_threshold=self._fraction(f'{place}.update_pcent_threshold',
                                                  found.get('update_pcent_threshold')),
            delete_pcent_threshold=self._fraction(f'{place}.delete_pcent_threshold',
                                                  found.get('delete_pcent_threshold')),
            policy=self._policy(f'{place}.policy', found.get('policy')),
            always_dry_run=self._boolean(f'{place}.always-dry-run', found.get('always-dry-run')),
            ignore_subzone_adds=self._boolean(f'{place}.ignore_subzone_adds', found.get('ignore_subzone_adds')),
            glob=self._text(f'{place}.glob', found.get('glob')), regex=self._regex(place, found))

    def _pool(self, place: str, targets: Any) -> tuple[str, ...]:
        """The pool, the default source of a zone without sources."""
        pools = [id for id, provider in self._providers.items()
                 if isinstance(provider, PoolProvider) and not (isinstance(targets, list) and id in targets)]
        if len(pools) != 1:
            self._note(place, 'must be given; without it a zone comes from the pool, and for that there has to be '
                              'one provider of the class pool that is none of its targets')
        return tuple(pools[:1])

    def _targets(self, place: str, found: Any) -> tuple[str, ...]:
        names = self._ids(place, found, self._providers, 'provider')
        for index, name in enumerate(names):
            target = self._providers.get(name)
            if target is not None and not isinstance(target, BaseProvider):
                self._note(f'{place}[{index}]', f'{name} can only be read from')
        return names

    def _regex(self, place: str, found: Mapping[str, Any]) -> re.Pattern[str] | None:
        text = self._text(f'{place}.regex', found.get('regex'))
        if text is None:
            return None
        if found.get('glob') is not None:
            self._note(f'{place}.regex', 'there is a glob already, and only one of the two can be')
        try:
            return re.compile(text)
        except re.error as error:
            self._note(f'{place}.regex', f'it is no regular expression ({error})')
            return None

    def _check_keys(self, place: str, found: Mapping[str, Any], known: Collection[str]) -> None:
        for key, value in found.items():
            if key not in known:
                self._note(f'{place}{key}', f'there is no such key{hint(key, known)}')
            elif key in REFUSED and value:
                self._note(f'{place}{key}', REFUSED[key])

    def _mapping(self, place: str, found: Any) -> Mapping[str, Any]:
        """*found*, empty if it is None; keys that are no strings are noted and left out."""
        if found is None:
            return {}
        if not isinstance(found, dict):
            self._note(place, 'must be a mapping')
            return {}
        for key in found:
            if not isinstance(key, str):
                self._note(place, f'the key {key} must be a string: write it in quotes')
        return {key: value for key, value in found.items() if isinstance(key, str)}

    def _ids(self, place: str, found: Any, known: Collection[str], what: str) -> tuple[str, ...]:
        """A list of ids; unknown ones are noted."""
        if found is None:
            return ()
        if not isinstance(found, list):
            self._note(place, 'must be a list')
            return ()
        for index, id_ in enumerate(found):
            if not isinstance(id_, str):
                self._note(f'{place}[{index}]', 'must be a string')
            elif id_ not in known:
                self._note(f'{place}[{index}]', f'there is no {what} {id_}{hint(id_, known)}')
            elif id_ in found[:index]:
                self._note(f'{place}[{index}]', f'{id_} is there twice')
        return tuple(id_ for id_ in found if isinstance(id_, str))

    def _policy(self, place: str, found: Any) -> tuple[str, ...]:
        if found is None:
            return ()
        words = [found] if isinstance(found, str) else found
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            self._note(place, 'must be a word, or a list of words')
            return ()
        try:
            policy.parse(words)
        except InvalidField as error:
            self._note(place, error.kwargs['why'])
        return tuple(words)

    def _zone_name(self, place: str, found: str) -> str:
        try:
            return normal_name(found)
        except InvalidField as error:
            self._note(place, str(error))
            return found

    def _text(self, place: str, found: Any) -> str | None:
        if found is not None and not isinstance(found, str):
            self._note(place, 'must be a string')
            return None
        return found

    def _boolean(self, place: str, found: Any) -> bool:
        if found is not None and not isinstance(found, bool):
            self._note(place, 'must be true or false')
        return found is True

    def _number(self, place: str, found: Any, otherwise: int) -> int:
        """A whole number from 1; *otherwise* if none is given."""
        if found is None:
            return otherwise
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            self._note(place, 'must be a whole number from 1')
            return otherwise
        return found

    def _fraction(self, place: str, found: Any) -> float | None:
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found <= 1:
            self._note(place, 'must be a fraction from 0 to 1, such as 0.3 for 30 %')
            return None
        return float(found)


def present(found: Mapping[str, Item | None]) -> dict[str, Item]:
    """*found* without the entries that are None."""
    return {id: value for id, value in found.items() if value is not None}


def provider(id: str, word: str, options: Options, mistakes: YamlErrors, place: str) -> BaseSource | None:
    """A source or target; None for an error, which is noted."""
    source: BaseSource | None = _object(
        id, word, options, mistakes, place, CLASSES, lambda cls: issubclass(cls, BaseSource), 'adapt_provider',
        'is neither a source nor a provider')
    return source


def processor(id: str, word: str, options: Options, mistakes: YamlErrors, place: str) -> BaseProcessor | None:
    """A processor; None for an error, which is noted."""
    instance: BaseProcessor | None = _object(
        id, word, options, mistakes, place, PROCESSORS, lambda cls: issubclass(cls, BaseProcessor), 'adapt_processor',
        'is no processor')
    return instance


def output(id: str, word: str, options: Options, mistakes: YamlErrors, place: str) -> BaseOutput | None:
    """A plan output; None for an error, which is noted."""
    instance: BaseOutput | None = _object(
        id, word, options, mistakes, place, {**OUTPUTS, **OCTODNS_OUTPUTS}, lambda cls: issubclass(cls, BaseOutput),
        None, f'is no output of ours; those are {", ".join(OUTPUTS)}')
    return instance


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
        ours = sorted(name for name in names if '.' not in name)
        mistakes.note(f'{place}.class', f'there is no class {path}{hint(path, ours)}; '
                                        f'there are {", ".join(ours)}, and dotted paths')
        return None
    try:
        cls = getattr(importlib.import_module(module), name, None)
    except Exception as error:
        mistakes.note(f'{place}.class', f'{module} cannot be imported ({type(error).__name__}: {error})')
        return None
    if not isinstance(cls, type):
        mistakes.note(f'{place}.class', f'there is no class {name} in {module}')
        return None
    return cls


def _construct(cls: type, id: str, options: Options, mistakes: YamlErrors, place: str,
               make: Callable[[dict[str, Any]], Any]) -> Any:
    """What *make* makes of *options*, each converted to its type; None for an error, which is noted."""
    before = len(mistakes.lines)
    kinds = _parameters(cls)
    kwargs = {name: _convert(value, kinds[name], mistakes, f'{place}.{name}') if name in kinds else value
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
                                                          f'{hint(unexpected[1], kinds)}')
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
    kinds: dict[str, tuple[Any, ...]] = {}
    for base in cls.__mro__:
        if '__init__' not in vars(base) or base is object:
            continue
        init = vars(base)['__init__']
        try:
            hints = typing.get_type_hints(init)
        except Exception:  # annotations may name what only type checkers import
            hints = {}
        parameters = list(inspect.signature(init).parameters.values())[2:]
        for parameter in parameters:
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                kinds.setdefault(parameter.name, _plain_types(hints.get(parameter.name))
                                 or _default_types(parameter.default))
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    return kinds


def _plain_types(annotation: Any) -> tuple[Any, ...]:
    """The types of an annotation, if all of them are plain."""
    every = typing.get_args(annotation) if isinstance(annotation, types.UnionType) \
        or typing.get_origin(annotation) is typing.Union else (annotation,)
    return every if all(part in _NAMES or part is type(None) for part in every) else ()


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
            parsed = _parse(value, kind)
            if parsed is not None:
                return parsed
    if object in kinds:
        return str(value) if isinstance(value, Secret) else value
    expected = ' or '.join(_NAMES[kind_] for kind_ in kinds if kind_ in _NAMES)
    quotes = ': write it in quotes' if str in kinds and isinstance(value, (int, float, bool)) else ''
    mistakes.note(place, f'must be {expected}{quotes}')
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
