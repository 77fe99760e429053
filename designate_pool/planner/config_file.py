"""The configuration file: YAML with the keys of octoDNS.

Every key is supported, or refused with the reason; top-level keys that begin with ``x-``, ``_`` or ``.`` are for
anchors, and ignored.
"""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import importlib
import inspect
import os
import pathlib
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from designate_pool.errors import BadConfiguration, InvalidField, PoolError, SourceError
from designate_pool.planner import validators
from designate_pool.planner.engine import Setup, ZoneSetting
from designate_pool.planner.octodns import adapter
from designate_pool.planner.outputs import OUTPUTS, BaseOutput, LogOutput
from designate_pool.planner.plan import policy
from designate_pool.planner.processors import PROCESSORS
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.sources import yaml_files
from designate_pool.planner.targets.pool import PoolProvider
from designate_pool.protocol.names_and_rdata import normal_name

TOP = ('manager', 'providers', 'processors', 'zones', 'secret_handlers', 'validators')
MANAGER = ('max_workers', 'processors', 'post_processors', 'plan_outputs', 'policy', 'plan_lifetime', 'plans',
           'include_meta', 'enable_checksum', 'auto_arpa', 'validators')
VALIDATORS = ('enabled', 'record', 'zone', 'validators', 'disable_validators')
#: Of workers, or seconds that a plan may be applied.
MOST = 1_000_000_000
#: What values must be, with the checks.
_TEXT = 'a string', lambda value: isinstance(value, str)
_BOOLEAN = 'true or false', lambda value: isinstance(value, bool)
_COUNT = f'a whole number from 1 to {MOST}', lambda value: type(value) is int and 0 < value <= MOST
_FRACTION = ('a fraction from 0 to 1, such as 0.3 for 30 %',
             lambda value: type(value) in (int, float) and 0 <= value <= 1)
#: Options of targets that are fractions.
THRESHOLDS = dict.fromkeys(('update_pcent_threshold', 'delete_pcent_threshold'), _FRACTION)
#: Keys of zones whose values are those of :class:`~designate_pool.planner.engine.ZoneSetting`.
_ZONE_VALUES = {'lenient': _BOOLEAN, **THRESHOLDS, 'always-dry-run': _BOOLEAN, 'ignore_subzone_adds': _BOOLEAN,
                'glob': _TEXT}
ZONE = (*_ZONE_VALUES, 'sources', 'targets', 'processors', 'alias', 'policy', 'regex', 'validators')
#: Keys of octoDNS that are not supported, with the reason; false or empty values are accepted.
REFUSED = {
    'enable_checksum': 'plans are not applied by a checksum here; keep the plan in a store, and apply it by its id',
    'auto_arpa': 'zones below arpa. are not made from others here; write them, or have octoDNS dump them',
}
#: The processor of octoDNS's ``include_meta``.
META = 'octodns.processor.meta.MetaProcessor'
META_OPTIONS = {'record_name': 'octodns-meta', 'include_time': False, 'include_provider': True}
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


def read(path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ) -> Setup:
    """The setup of the file at *path*.  No server is contacted.

    :raises BadConfiguration: with every mistake of the file, and its place; of a file that is no YAML, with the first
    """
    reader, files = _Reader(environ), list[pathlib.Path]()
    try:
        document = yaml_files.load(pathlib.Path(path).resolve(), files=files)
    except SourceError as error:
        reader.note(str(error.kwargs['source']), error.kwargs['why'])
    else:
        setup = dataclasses.replace(reader.setup(document), included=tuple(files[1:]))
    if reader.mistakes:
        raise BadConfiguration(count=len(reader.mistakes),
                               listing=''.join(f'\n  {line}' for line in reader.mistakes))
    return setup


class Secret(str):
    """A fetched string, which must not be shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return '(a secret)'


class EnvSecrets:
    """Environment variables: ``NAME`` or ``NAME/default``; the default may contain slashes."""

    def __init__(self, name: str, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def fetch(self, name: str, source: Any) -> str:
        """The value of the variable *name*, or the default after its slash."""
        variable, slash, default = name.partition('/')
        if variable in self._environ:
            return self._environ[variable]
        if not slash:
            raise InvalidField(field=variable, why='the environment has no such variable')
        return default


class FileSecrets:
    """The contents of files, without surrounding white space.

    :param directory: for relative paths
    """

    def __init__(self, name: str, directory: str = '.') -> None:
        self._directory = pathlib.Path(directory)

    def fetch(self, name: str, source: Any) -> str:
        """The secret *name*; the ``context`` of *source* is the place of its value."""
        path = self._directory / name
        try:
            return path.read_text(encoding='utf-8').strip()
        except OSError as error:
            raise InvalidField(field=str(path), why=f'it cannot be read ({error.strerror})') from error
        except UnicodeDecodeError as error:
            raise InvalidField(field=str(path), why='it is not UTF-8 text') from error


class _Kind(NamedTuple):
    """What a section makes.

    :ivar names: classes by name; any dotted path is allowed as well
    """

    names: Mapping[str, str | type]
    is_ours: Callable[[type], bool]
    why_not: str
    adapt: Callable[[str, type, Mapping[str, Any]], Any] | None = None


#: By section.
_KINDS = {
    'secret_handlers': _Kind({'file': FileSecrets}, lambda cls: callable(getattr(cls, 'fetch', None)),
                             'is no secret handler: it has no fetch'),
    'providers': _Kind(CLASSES, lambda cls: issubclass(cls, BaseSource), 'is neither a source nor a provider',
                       adapter.adapt_provider),
    'processors': _Kind(PROCESSORS, lambda cls: issubclass(cls, BaseProcessor), 'is no processor',
                        adapter.adapt_processor),
    'manager.plan_outputs': _Kind({**OUTPUTS, **OCTODNS_OUTPUTS}, lambda cls: issubclass(cls, BaseOutput),
                                  f'is no output of ours; those are {", ".join(OUTPUTS)}'),
}


class _Source(dict[str, Any]):
    """A mapping with its place in the file."""

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        super().__init__(values)
        self.context = place


class _Reader:
    """Reads one file, section by section, and notes its *mistakes* in the order in which they are found."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.mistakes: list[str] = []
        #: By the prefix of values; octoDNS's handlers, too.  The ``context`` of a value's mapping is its place.
        self._secret_handlers: dict[str, Any] = {'env': EnvSecrets('env', environ)}
        self._policies: dict[str, tuple[str, ...]] = {}
        #: Ids of octoDNS's validators whose warnings are told.
        self._warnings = frozenset[str]()
        #: By id; None for one that is wrong.
        self._providers: dict[str, BaseSource | None] = {}
        self._processors: dict[str, BaseProcessor | None] = {}

    def note(self, place: str, why: str) -> None:
        """Note a mistake, once, at a *place* such as ``zones.example.com..targets[0]``; *why* has no secret."""
        line = f'{place}: {" ".join(why.split()).rstrip(".")}'
        if line not in self.mistakes:
            self.mistakes.append(line)

    def setup(self, document: Mapping[str, Any]) -> Setup:
        self._check_keys('', {key: value for key, value in document.items() if not key.startswith(('x-', '_', '.'))},
                         TOP)
        manager = self._mapping('manager', document.get('manager'))
        self._check_keys('manager.', manager, MANAGER)
        self._secret_handlers |= _present(self._objects('secret_handlers', document.get('secret_handlers')))
        self._providers = self._objects('providers', document.get('providers'))
        self._processors = self._objects('processors', document.get('processors'))
        outputs = self._objects('manager.plan_outputs', manager.get('plan_outputs')) or {'log': LogOutput('log')}
        last = self._ids('manager', manager, 'post_processors', self._processors, 'processor')
        if self._value('manager', manager, 'include_meta', _BOOLEAN):
            last = (*last, *self._meta_processor())
        if document.get('validators'):
            self.note('validators', "classes of validators are not run here; see 'manager.validators' for those known")
        self._warnings = validators.enabled(self._validators('manager', manager), self.note)
        zones = self._zones(self._mapping('zones', document.get('zones')))
        return Setup(
            zones=zones, providers=_present(self._providers), processors=_present(self._processors),
            outputs=list(_present(outputs).values()), last_processors=last,
            first_processors=self._ids('manager', manager, 'processors', self._processors, 'processor'),
            policy=self._policy('manager', manager), target_policies=self._policies,
            max_workers=self._value('manager', manager, 'max_workers', _COUNT) or 1,
            plan_lifetime=datetime.timedelta(
                seconds=self._value('manager', manager, 'plan_lifetime', _COUNT) or 86400),
            plans=self._value('manager', manager, 'plans', _TEXT))

    def _objects(self, section: str, found: Any) -> dict[str, Any]:
        """The objects of a section, by id; None for one that is wrong."""
        made: dict[str, Any] = {}
        for id, settings in self._mapping(section, found).items():
            place = f'{section}.{id}'
            options = dict(self._mapping(place, settings))
            word = options.pop('class', None)
            if section == 'providers' and 'policy' in options:
                self._policies[id] = self._policy(place, options)
                del options['policy']
            if not isinstance(word, str):
                self.note(f'{place}.class', 'must be given, as a string')
                made[id] = None
                continue
            made[id] = item = self._object(_KINDS[section], id, word, self._with_secrets(options, place), place)
            if isinstance(item, BaseProvider):
                for key, kind in THRESHOLDS.items():
                    self._value(place, vars(item), key, kind)
        return made

    def _meta_processor(self) -> tuple[str, ...]:
        if 'meta' in self._processors:
            self.note('manager.include_meta', "a processor 'meta' is there already, and this would be another")
            return ()
        self._processors['meta'] = self._object(_KINDS['processors'], 'meta', META, META_OPTIONS,
                                                'manager.include_meta')
        return ('meta',)

    def _zones(self, found: Mapping[str, Any]) -> dict[str, ZoneSetting]:
        if not found:
            self.note('zones', 'must have at least one')
        zones: dict[str, ZoneSetting] = {}
        for written, options in found.items():
            place = f'zones.{written}'
            try:
                name = written if written.startswith('*') else normal_name(written)
            except InvalidField as error:
                self.note(place, str(error))
                continue
            if name in zones:
                self.note(place, f'{name} is there twice')
            zones[name] = self._zone(place, name, self._mapping(place, options))
        is_open = any(name.startswith('*') for name in zones)
        for name, zone in zones.items():
            if zone.alias in zones and zones[zone.alias].alias is not None:
                self.note(f'zones.{name}.alias', f'{zone.alias} is an alias itself')
            elif zone.alias is not None and zone.alias not in zones and not is_open:
                self.note(f'zones.{name}.alias', f'{zone.alias} is no zone of this file{_hint(zone.alias, zones)}')
        return zones

    def _zone(self, place: str, name: str, found: Mapping[str, Any]) -> ZoneSetting:
        self._check_keys(f'{place}.', found, ZONE)
        alias = self._value(place, found, 'alias', _TEXT)
        is_many = name.startswith('*')
        for key in ('glob', 'regex'):
            if key in found and not is_many:
                self.note(f'{place}.{key}', 'only a zone that begins with * can have it')
        if alias is not None:
            for key in ('sources', 'ignore_subzone_adds'):
                if key in found:
                    self.note(f'{place}.{key}', 'an alias has its records from the other zone')
            if is_many:
                self.note(f'{place}.alias', 'a zone that begins with * cannot be one')
            try:
                alias = normal_name(alias)
            except InvalidField as error:
                self.note(f'{place}.alias', str(error))
        elif 'targets' not in found:
            self.note(f'{place}.targets', 'must be given')
        sources = self._ids(place, found, 'sources', self._providers, 'provider')
        if 'sources' in found and found['sources'] in (None, []):
            self.note(f'{place}.sources', 'must have at least one')
        elif 'sources' not in found and alias is None:
            sources = self._pool(f'{place}.sources', found.get('targets'))
        return ZoneSetting(
            sources=sources, targets=self._targets(place, found), alias=alias,
            processors=self._ids(place, found, 'processors', self._processors, 'processor'),
            warnings=self._warnings - validators.disabled(f'{place}.validators', self._validators(place, found),
                                                          self.note),
            policy=self._policy(place, found), regex=self._regex(place, found),
            **{key.replace('-', '_'): value for key, kind in _ZONE_VALUES.items()
               if (value := self._value(place, found, key, kind)) is not None})

    def _validators(self, place: str, found: Mapping[str, Any]) -> Mapping[str, Any]:
        settings = self._mapping(f'{place}.validators', found.get('validators'))
        self._check_keys(f'{place}.validators.', settings, VALIDATORS)
        return settings

    def _pool(self, place: str, targets: Any) -> tuple[str, ...]:
        """The pool, the default source of a zone without sources."""
        pools = [id for id, provider in self._providers.items()
                 if isinstance(provider, PoolProvider) and not (isinstance(targets, list) and id in targets)]
        if len(pools) != 1:
            self.note(place, 'must be given; without it a zone comes from the pool, and for that there has to be '
                             'one provider of the class pool that is none of its targets')
        return tuple(pools[:1])

    def _targets(self, place: str, found: Mapping[str, Any]) -> tuple[str, ...]:
        names = self._ids(place, found, 'targets', self._providers, 'provider')
        for index, name in enumerate(names):
            target = self._providers.get(name)
            if target is not None and not isinstance(target, BaseProvider):
                self.note(f'{place}.targets[{index}]', f'{name} can only be read from')
        return names

    def _regex(self, place: str, found: Mapping[str, Any]) -> re.Pattern[str] | None:
        if (text := self._value(place, found, 'regex', _TEXT)) is None:
            return None
        if found.get('glob') is not None:
            self.note(f'{place}.regex', 'there is a glob already, and only one of the two can be')
        try:
            return re.compile(text)
        except re.error as error:
            self.note(f'{place}.regex', f'it is no regular expression ({error})')
            return None

    def _check_keys(self, place: str, found: Mapping[str, Any], known: Collection[str]) -> None:
        for key, value in found.items():
            if key not in known:
                self.note(f'{place}{key}', f'there is no such key{_hint(key, known)}')
            elif key in REFUSED and value:
                self.note(f'{place}{key}', REFUSED[key])

    def _mapping(self, place: str, found: Any) -> Mapping[str, Any]:
        """*found*, empty if it is None."""
        if found is not None and not isinstance(found, dict):
            self.note(place, 'must be a mapping')
        return found if isinstance(found, dict) else {}

    def _ids(self, place: str, found: Mapping[str, Any], key: str, known: Collection[str],
             what: str) -> tuple[str, ...]:
        """The ids in the list *key*; unknown ones are noted."""
        ids = found.get(key)
        if ids is None:
            return ()
        if not isinstance(ids, list):
            self.note(f'{place}.{key}', 'must be a list')
            return ()
        for index, id in enumerate(ids):
            if not isinstance(id, str):
                self.note(f'{place}.{key}[{index}]', 'must be a string')
            elif id not in known:
                self.note(f'{place}.{key}[{index}]', f'there is no {what} {id}{_hint(id, known)}')
            elif id in ids[:index]:
                self.note(f'{place}.{key}[{index}]', f'{id} is there twice')
        return tuple(id for id in ids if isinstance(id, str))

    def _policy(self, place: str, found: Mapping[str, Any]) -> tuple[str, ...]:
        words = found.get('policy')
        if words is None:
            return ()
        words = [words] if isinstance(words, str) else words
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            self.note(f'{place}.policy', 'must be a word, or a list of words')
            return ()
        try:
            policy.parse(words)
        except InvalidField as error:
            self.note(f'{place}.policy', error.kwargs['why'])
        return tuple(words)

    def _value(self, place: str, found: Mapping[str, Any], key: str, kind: tuple[str, Callable[[Any], bool]]) -> Any:
        """The value of *key*; None if there is none, or one that is not right, which is noted."""
        value, (what, check) = found.get(key), kind
        if value is None or check(value):
            return value
        self.note(f'{place}.{key}', f'must be {what}')
        return None

    def _with_secrets(self, values: Mapping[str, Any], place: str) -> dict[str, Any]:
        """*values* with all secrets fetched, at any depth; a failure is noted, and the value left as it is."""
        return {key: self._with_secret(value, f'{place}.{key}', _Source(values, place))
                for key, value in values.items()}

    def _with_secret(self, value: Any, place: str, source: _Source) -> Any:
        if isinstance(value, Mapping):
            return self._with_secrets(value, place)
        if isinstance(value, list):
            return [self._with_secret(item, f'{place}[{index}]', source) for index, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        word, slash, name = value.partition('/')
        if not slash or word not in self._secret_handlers:
            return value
        try:
            fetched = self._secret_handlers[word].fetch(name, source)
        except PoolError as error:
            self.note(place, str(error))
        except Exception as error:
            self.note(place, f'{word} cannot fetch it ({type(error).__name__}: {error})')
        else:
            return Secret(fetched) if isinstance(fetched, str) else fetched
        return value

    def _object(self, kind: _Kind, id: str, word: str, options: Mapping[str, Any], place: str) -> Any:
        """The object of the class *word*, a name or a dotted path; None for an error, which is noted."""
        named = kind.names.get(word, word)
        cls = self._class(named, kind.names, f'{place}.class') if isinstance(named, str) else named
        if cls is None:
            return None
        if kind.is_ours(cls):
            return self._construct(cls, options, place, lambda kwargs: cls(id, **kwargs))
        adapt = kind.adapt
        if adapt is not None and any(base.__module__.partition('.')[0] == 'octodns' for base in cls.__mro__):
            return self._construct(cls, options, place, lambda kwargs: adapt(id, cls, kwargs))
        self.note(f'{place}.class', f'{word} {kind.why_not}')
        return None

    def _class(self, path: str, names: Iterable[str], place: str) -> type | None:
        """The class at a dotted path; None if there is none, which is noted."""
        module, dot, name = path.rpartition('.')
        if not dot:
            ours = sorted(name for name in names if '.' not in name)
            self.note(place, f'there is no class {path}{_hint(path, ours)}; there are {", ".join(ours)}, and dotted '
                             'paths')
            return None
        try:
            cls = getattr(importlib.import_module(module), name, None)
        except Exception as error:
            self.note(place, f'{module} cannot be imported ({type(error).__name__}: {error})')
            return None
        if not isinstance(cls, type):
            self.note(place, f'there is no class {name} in {module}')
            return None
        return cls

    def _construct(self, cls: type, options: Mapping[str, Any], place: str,
                   make: Callable[[dict[str, Any]], Any]) -> Any:
        """What *make* makes of *options*, each converted to its type; None for an error, which is noted."""
        before = len(self.mistakes)
        kinds = _parameters(cls)
        kwargs = {name: self._convert(value, kinds.get(name, ()), f'{place}.{name}') for name, value in options.items()}
        for name, parameter in inspect.signature(cls).parameters.items():
            if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD \
                    and name not in options and name not in ('id', 'name'):
                self.note(f'{place}.{name}', 'must be given')
        while True:
            try:
                made = make(kwargs)
            except Exception as error:
                unexpected = _UNEXPECTED_ARGUMENT.search(str(error))
                if unexpected is not None and unexpected[1] in kwargs:
                    del kwargs[unexpected[1]]
                    shown = next((word for word, path in CLASSES.items()
                                  if path == f'{cls.__module__}.{cls.__name__}'), cls.__name__)
                    self.note(f'{place}.{unexpected[1]}', f'{shown} has no such option{_hint(unexpected[1], kinds)}')
                    continue
                if len(self.mistakes) == before:
                    why = str(error) if isinstance(error, PoolError) else f'{type(error).__name__}: {error}'
                    self.note(place, _redacted(why, options))
                return None
            return made if len(self.mistakes) == before else None

    def _convert(self, value: Any, kinds: tuple[Any, ...], place: str) -> Any:
        """*value* as one of *kinds*, numbers and booleans from strings since secrets are; a failure is noted."""
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
        expected = ' or '.join(_NAMES[kind] for kind in kinds if kind in _NAMES)
        quotes = ': write it in quotes' if str in kinds and isinstance(value, (int, float, bool)) else ''
        self.note(place, f'must be {expected}{quotes}')
        return value


def _present(items: Mapping[str, Any]) -> dict[str, Any]:
    """*items* without those that are None."""
    return {id: value for id, value in items.items() if value is not None}


def _hint(word: object, known: Iterable[str]) -> str:
    """`` (did you mean ...?)`` if *word* is similar to one of *known*, otherwise empty."""
    close = difflib.get_close_matches(str(word).lower(), list(known), n=1, cutoff=0.7)
    return f' (did you mean {close[0]}?)' if close else ''


def _redacted(text: str, values: Any) -> str:
    """*text* with every secret of *values* replaced."""
    if isinstance(values, Secret):
        return text.replace(values, repr(values)) if values else text
    if isinstance(values, Mapping):
        values = list(values.values())
    for value in values if isinstance(values, list) else ():
        text = _redacted(text, value)
    return text


def _parameters(cls: type) -> dict[str, tuple[Any, ...]]:
    """The options of a class, and of bases that it passes some on to, with types; none if unknown or not plain."""
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
                kinds.setdefault(parameter.name, _types_of(hints.get(parameter.name), parameter.default))
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    return kinds


def _types_of(annotation: Any, default: Any) -> tuple[Any, ...]:
    """The types of an annotation if all are plain; of a numeric default otherwise, beside which any are accepted."""
    every = typing.get_args(annotation) if isinstance(annotation, types.UnionType) \
        or typing.get_origin(annotation) is typing.Union else (annotation,)
    if all(part in _NAMES or part is type(None) for part in every):
        return every
    return (type(default), object) if isinstance(default, (bool, int, float)) else ()


def _parse(text: str, kind: Any) -> Any:
    """*text* as a value of *kind*; None if it is none."""
    try:
        return _BOOLEANS.get(text.lower()) if kind is bool else kind(text) if kind in (int, float) else None
    except ValueError:
        return None
