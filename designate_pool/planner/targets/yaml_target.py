"""octoDNS's YAML as a target.

The invariant: records that a plan does not change stay as they are written, and each file is replaced atomically.  A
name stays in its file, so that an interrupted plan leaves no record in two files and can be applied again.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from designate_pool.errors import BackendError, InvalidField, SourceError
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import NOT_DNS, BaseProvider
from designate_pool.planner.sources import yaml_files, yaml_rdata as values
from designate_pool.planner.sources.zonefile import SLASH
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import MAX_TTL, is_ttl, normal_name, normal_rdata, rdata_without_dots
from designate_pool.protocol.rrset import NO_EXTRA, Extra, RRset, rrset

#: Types with one record for each name, whose data is ``value``.
_SINGLE = frozenset({'ALIAS', 'CNAME', 'DNAME'})
#: Names, relative to the zone, at which octoDNS has SRV records: ``_service._protocol`` (RFC 2782), or a wildcard.
_SRV_NAME = re.compile(r'(?:\*|_[^.]+)\.[^.]')
#: Types whose data is always the same after writing and reading YAML.
_UNCHANGED_TYPES = frozenset({'A', 'AAAA', 'CNAME', 'DNAME', 'MX', 'NS', 'OPENPGPKEY', 'PTR', 'SRV'})
_CATCH_ALL = ('', '*')


class Entry(NamedTuple):
    """One record set of a file.

    :ivar line: of the mapping, from 1
    """

    path: pathlib.Path
    name: str
    line: int
    data: Mapping[str, Any]

    @property
    def type(self) -> str:
        """The type of its records."""
        return str(self.data.get('type'))

    @property
    def is_lenient(self) -> bool:
        """Whether its records may break a rule of zones."""
        block = self.data.get('octodns')
        return isinstance(block, Mapping) and block.get('lenient') is True


class YamlProvider(BaseProvider):
    """A folder of octoDNS's YAML: a file or a folder of files for each zone, or both.

    The options are those of octoDNS's class of this name.

    :param enforce_order: whether unsorted keys are an error
    :param order_mode: ``natural`` (2 before 12) or ``simple``
    :param populate_should_replace: whether record sets replace those of earlier sources
    :param supports_root_ns: whether the NS records of the apex are written and compared
    :param split_extension: extension of folders with the files of one zone, ``.`` for ``example.com.``; None for none
    :param split_catchall: whether the apex and ``*`` are written to a file named ``$`` and the zone
    :param shared_filename: a file whose records are in all zones, when they are read as sources
    :param disable_zonefile: whether files of whole zones are ignored, and only folders used
    :param escaped_semicolons: whether semicolons in TXT values are written ``\\;``
    """

    SUPPORTS = values.types() | NOT_DNS
    SUPPORTS_OCTODNS = True
    SUPPORTS_BROKEN_RULES = True
    SUPPORTS_GEO = True
    SUPPORTS_DYNAMIC = True
    SUPPORTS_POOL_VALUE_STATUS = True
    SUPPORTS_DYNAMIC_SUBNETS = True

    def __init__(self, id: str, directory: str, default_ttl: int = 3600, enforce_order: bool = True,
                 order_mode: str = 'natural', populate_should_replace: bool = False, supports_root_ns: bool = True,
                 split_extension: str | None = None, split_catchall: bool = True, shared_filename: str | None = None,
                 disable_zonefile: bool = False, escaped_semicolons: bool | None = None,
                 ignore_missing_zones: bool = False, **settings: Any) -> None:
        super().__init__(id, **settings)
        self.directory = pathlib.Path(directory)
        self.default_ttl = default_ttl
        self.order = yaml_files.order(order_mode)
        self.enforce_order = enforce_order
        self.populate_should_replace = populate_should_replace
        self.SUPPORTS_ROOT_NS = supports_root_ns  # type: ignore[misc]  # an option here
        self.split_extension = split_extension or None
        self.split_catchall = split_catchall
        self.shared_filename = shared_filename or None
        self.disable_zonefile = disable_zonefile
        self.escaped_semicolons = escaped_semicolons is not False
        self.ignore_missing_zones = ignore_missing_zones
        if self.disable_zonefile and self.split_extension is None and self.shared_filename is None:
            raise InvalidField(field=id, why="with 'disable_zonefile' there must be a 'split_extension' or a "
                                             "'shared_filename'; else it has no files")

    def list_zones(self) -> list[str]:
        try:
            names = list(self._zone_names())
        except OSError as error:
            raise SourceError(source=self.directory, why=error.strerror) from error
        return sorted({normal_name(values.ascii_name(name.replace(SLASH, '/'))) for name in names})

    def files(self, zone: str, with_shared: bool = True) -> list[pathlib.Path]:
        """The files with records of *zone*, in the order of reading.

        :raises SourceError: when there are files for both the ASCII and the Unicode name of the zone, or a folder
            cannot be read
        """
        paths: list[pathlib.Path] = []
        folder = self.split_folder(zone)
        if folder is not None and folder.is_dir():
            try:
                # Not glob(): for that, a folder that may not be read is empty.
                paths.extend(path for path in folder.iterdir() if path.name.endswith('.yaml'))
            except OSError as error:
                raise SourceError(source=folder, why=error.strerror) from error
        if not self.disable_zonefile and (path := self.zone_file(zone)).is_file():
            paths.append(path)
        if with_shared and self.shared_filename is not None:
            paths.append(self.directory / self.shared_filename)
        return sorted(paths)

    def zone_file(self, zone: str) -> pathlib.Path:
        """The file of *zone*, existing or not."""
        return self._existing_path(zone, 'yaml')

    def split_folder(self, zone: str) -> pathlib.Path | None:
        """The folder with the files of *zone*, existing or not; None if folders are not used."""
        return None if self.split_extension is None else self._existing_path(zone.removesuffix('.'),
                                                                             self.split_extension)

    def entries(self, path: pathlib.Path, lenient: bool = False) -> Iterator[Entry]:
        """The record sets of a file.

        :param lenient: whether one with a name that is no text to YAML is left out, with a warning: it is ignored under
            the name as written, so that what a target has there stays
        """
        # The shared file may be outside the folder of the source.
        is_inside = path.is_relative_to(self.directory) and '..' not in path.relative_to(self.directory).parts
        folder = self.directory if is_inside else path.parent
        key = self.order if self.enforce_order else None
        left_out: list[tuple[str, Any]] = []

        def leave_out(name: str, data: Any, why: str) -> None:
            self.log.warning(why)
            left_out.extend((name, _ignored(datum)) for datum in (data if isinstance(data, list) else [data])
                            if isinstance(datum, yaml_files.LineMapping))

        document = yaml_files.load(path, key, folder, leave_out if lenient else None)
        for name, data in (*document.items(), *left_out):
            for datum in data if isinstance(data, list) else [data]:
                if not isinstance(datum, yaml_files.LineMapping):
                    raise SourceError(source=path, why=f'{name!r} has no mapping with a type and values')
                yield Entry(path, name, datum.line, datum)

    def rrset_of(self, entry: Entry, zone: str, lenient: bool) -> RRset:
        """*entry* as an RRset of *zone*.

        :raises SourceError: for an invalid record set, with its line
        """
        data, rtype, name = entry.data, entry.type, entry.name
        try:
            if 'type' not in data:
                raise ValueError("'type' is missing")
            if rtype not in values.types() and rtype not in NOT_DNS:
                raise ValueError('octoDNS has no such type')
            loose = lenient or entry.is_lenient
            fault = None if loose else name_fault(name, rtype)
            if fault is not None:
                raise ValueError(fault)
            entries, ttl = self._values(data, rtype), _ttl(data.get('ttl', self.default_ttl))
            if rtype in NOT_DNS:
                texts = {self._data(entry, 'CNAME', values.ascii_name(entry_value), loose) if rtype == 'ALIAS' else
                         _octodns_text(entry_value) for entry_value in entries}
                return RRset(normal_name(absolute(name, zone)), rtype, ttl, tuple(sorted(texts)), extra_of(data))
            rdatas = [self._data(entry, rtype, values.to_rdata(rtype, entry_value, loose), loose)
                      for entry_value in entries]
            return rrset(absolute(name, zone), rtype, ttl, rdatas, extra_of(data))
        except (ValueError, InvalidField) as error:
            where = f'{name!r} {rtype}' if 'type' in data else repr(name)
            why = error.kwargs['why'] if isinstance(error, InvalidField) else error
            raise SourceError(source=f'{entry.path}, line {entry.line}', why=f'{where}: {why}') from error

    def _data(self, entry: Entry, rtype: str, text: str, lenient: bool) -> str:
        """Data in normal form; if *lenient*, a name in it without the final dot is absolute."""
        if not lenient:
            return normal_rdata(rtype, text)
        data, lacks_dot = rdata_without_dots(rtype, text)
        if lacks_dot:
            self.log.warning('%s, line %d: %r %s: %s lacks the final dot of a name, which is taken for an absolute one',
                             entry.path, entry.line, entry.name, entry.type, text)
        return data

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        files = self.files(zone.name, with_shared=not target)
        if not files:
            if target or self.ignore_missing_zones:
                return False
            raise SourceError(source=self.directory, why=f'it has no YAML of {zone.name}')
        zone.add_each(((self.rrset_of(entry, zone.name, lenient), entry.is_lenient)
                       for path in files for entry in self.entries(path, lenient and not target)),
                      self.populate_should_replace, lenient)
        return True

    def _zone_names(self) -> Iterator[str]:
        end = self.split_extension
        for path in self.directory.iterdir():
            if end is not None and path.name.endswith(end) and path.is_dir():
                yield f'{path.name.removesuffix(end)}.'
            elif not self.disable_zonefile and path.name.endswith('.yaml') and path.name.count('.') > 1 \
                    and path.is_file():
                yield path.name.removesuffix('yaml')

    def _existing_path(self, zone: str, end: str) -> pathlib.Path:
        for slash in (SLASH, '-') if '/' in zone else ('-',):
            paths = dict.fromkeys(self.directory / f'{name.replace("/", slash)}{end}'
                                  for name in (values.unicode_name(zone), zone))
            existing = [path for path in paths if path.exists()]
            if len(existing) > 1:
                raise SourceError(source=self.directory, why=f'it has both {existing[0].name} and {existing[1].name}')
            if existing:
                return existing[0]
        return self.directory / f'{values.unicode_name(zone).replace("/", SLASH)}{end}'

    def _values(self, data: Mapping[str, Any], rtype: str) -> list[Any]:
        if rtype in _SINGLE and 'value' not in data:
            raise ValueError("'value' is missing")
        items = data['value'] if rtype in _SINGLE else data.get('values', data.get('value', []))
        items = items if isinstance(items, list) else [items]
        if None in items or not items:
            raise ValueError('a value is missing')
        if rtype in values.TEXT_TYPES and not self.escaped_semicolons:
            return [item.replace(';', '\\;') if isinstance(item, str) else item for item in items]
        return items

    def _process_desired_zone(self, desired: Zone) -> Zone:
        """Replace data by what is read after writing it to YAML, if that differs."""
        desired = super()._process_desired_zone(desired)
        for original in desired:
            if original.type in _UNCHANGED_TYPES or not original.extra.is_for(self.id):
                continue
            try:
                data = entry_data(original, self._relative(original.name, desired.name), self.default_ttl,
                                  self.escaped_semicolons)
                again = self.rrset_of(Entry(self.directory, '', 0, data), original.name, lenient=True)
            except (ValueError, SourceError) as error:
                self.supports_warn_or_except(f'it cannot hold {original.name} {original.type} ({error})',
                                             'it is left out')
                desired.remove_record(original)
                continue
            if again.rdatas != original.rdatas:
                self.log.info('%s: %s %s becomes %s', self.id, original.name, original.type, ', '.join(again.rdatas))
                desired.add_record(original._replace(rdatas=again.rdatas), replace=True, lenient=True)
        return desired

    def _apply(self, plan: Plan) -> ApplyResult | None:
        new = {rrset.key: rrset for change in plan.changes for rrset in change.new}
        old = {rrset.key for change in plan.changes for rrset in change.existing}
        entries = [entry for path in self.files(plan.zone, with_shared=False) for entry in self.entries(path)]
        homes = {_owner_name(entry, plan.zone): entry for entry in reversed(entries)}
        documents: dict[pathlib.Path, dict[str, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
        touched: set[pathlib.Path] = set()
        for entry in entries:
            if f'{_owner_name(entry, plan.zone)}\t{entry.type}' in old | new.keys():
                touched.add(entry.path)
                documents[entry.path].setdefault(entry.name, [])
            else:
                documents[entry.path][entry.name].append(entry.data)
        for new_rrset in new.values():
            home = homes.get(new_rrset.name)
            name = home.name if home else self._relative(new_rrset.name, plan.zone)
            path = home.path if home else self._new_file(name, plan.zone)
            documents[path][name].append(entry_data(new_rrset, name, self.default_ttl, self.escaped_semicolons))
            touched.add(path)
        try:
            if not plan.exists and not touched:
                touched.add(self._new_file('', plan.zone))
            self._write(touched, plan.exists, documents)
        except OSError as error:
            raise BackendError(why=f'{error.filename or self.directory} cannot be written: {error.strerror}') from error
        return None

    def _write(self, paths: Iterable[pathlib.Path], exists: bool,
               documents: Mapping[pathlib.Path, Mapping[str, list[Mapping[str, Any]]]]) -> None:
        for path in sorted(paths):
            document = {name: entry[0] if len(entry) == 1 else sorted(entry, key=lambda data: str(data.get('type')))
                        for name, entry in documents.get(path, {}).items() if entry}
            if not document and exists and self.split_extension is not None and path.parent != self.directory:
                path.unlink(missing_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            yaml_files.dump(path, document, self.order)

    def _new_file(self, name: str, zone: str) -> pathlib.Path:
        """The file for a new name."""
        folder = self.split_folder(zone)
        if folder is None:
            return self.zone_file(zone)
        if self.split_catchall and name in _CATCH_ALL:
            return folder / f'${values.unicode_name(zone).removesuffix(".").replace("/", "-")}.yaml'
        return folder / f'{name.replace("/", "-")}.yaml'

    def _relative(self, name: str, zone: str) -> str:
        return '' if name == zone else values.unicode_name(name.removesuffix('.' if zone == '.' else f'.{zone}'))


def _ignored(data: yaml_files.LineMapping) -> yaml_files.LineMapping:
    ignored = yaml_files.LineMapping(data, octodns={'ignored': True, 'lenient': True})
    ignored.line = data.line
    return ignored


def extra_of(data: Mapping[str, Any]) -> Extra:
    """The ``Extra`` of a record set, without ``lenient``, which affects reading only; ValueError for a wrong type."""
    block = data.get('octodns') or {}
    dynamic = data.get('dynamic') or {}
    geo = data.get('geo') or {}
    if not (block or dynamic or geo):
        return NO_EXTRA
    if not all(isinstance(mapping, Mapping) for mapping in (block, dynamic, geo)):
        raise ValueError("'octodns', 'dynamic' and 'geo' are mappings")
    rest = {name: value for name, value in block.items()
            if name not in ('ignored', 'included', 'excluded', 'lenient')}
    ignored = block.get('ignored', False)
    if not isinstance(ignored, bool):
        raise ValueError(f"'ignored' is true or false, not {ignored!r}")
    return Extra(ignored, _ids(block, 'included'), _ids(block, 'excluded'),
                 {**_checked_dynamic(dynamic), **({'geo': geo} if geo else {})} or None, rest or None)


def entry_data(found: RRset, name: str, default_ttl: int, escaped_semicolons: bool) -> dict[str, Any]:
    """The inverse of :meth:`YamlProvider.rrset_of`; ValueError for data that YAML cannot represent."""
    values_ = [octodns_value(found.type, rdata) for rdata in found.rdatas]
    extra = extra_data(found.extra)
    if name_fault(name, found.type) is not None or any(values.needs_leniency(found.type, value) for value in values_):
        extra['octodns'] = {**extra.get('octodns', {}), 'lenient': True}
    if found.type in values.TEXT_TYPES and not escaped_semicolons:
        values_ = [value.replace('\\;', ';') for value in values_]
    return {'type': found.type,
            **({} if found.ttl == default_ttl else {'ttl': found.ttl}),
            **({'value': values_[0]} if len(values_) == 1 else {'values': values_}), **extra}


def extra_data(extra: Extra) -> dict[str, Any]:
    """The inverse of :func:`extra_of`: the keys ``octodns``, ``dynamic`` and ``geo`` of a record set."""
    block = {**(extra.octodns or {}), **({'ignored': True} if extra.ignored else {}),
             **{name: list(ids) for name, ids in (('included', extra.included), ('excluded', extra.excluded)) if ids}}
    dynamic = dict(extra.dynamic or {})
    geo = dynamic.pop('geo', None)
    return {name: value for name, value in (('octodns', block), ('dynamic', dynamic), ('geo', geo)) if value}


def name_fault(name: str, rtype: str) -> str | None:
    """Why octoDNS accepts an RRset of this type at *name*, which is relative to the zone, only leniently; or None."""
    if rtype == 'CNAME' and not name:
        return 'a CNAME cannot be at the apex, beside SOA and NS'
    if rtype == 'ALIAS' and name:
        return 'an ALIAS can be at the apex only'
    if rtype == 'SRV' and not _SRV_NAME.match(name):
        return "the name of an SRV record begins with '_service._protocol' (RFC 2782)"
    return None


def octodns_value(rtype: str, text: str) -> Any:
    """The value that YAML has for data of a type that octoDNS knows; else ValueError."""
    if rtype in values.types():
        return values.from_rdata(rtype, text)
    return json.loads(text) if text.startswith('{') else text


def _octodns_text(value: Any) -> str:
    """A value of a type that is no DNS type, as :mod:`designate_pool.planner.octodns.records` has it."""
    if not isinstance(value, Mapping):
        raise ValueError(f'{value!r} is not a mapping of fields')
    return json.dumps(value, sort_keys=True)


def absolute(name: str, zone: str) -> str:
    """The absolute name of *name* in *zone*; ValueError for a name that is not relative."""
    if name == '@' or name.endswith('.') or any(character.isspace() for character in name):
        raise ValueError("names are relative to the zone, without blanks and a final dot; the apex is ''")
    return zone if not name else f'{values.ascii_name(name)}.{"" if zone == "." else zone}'


def _ttl(value: Any) -> int:
    ttl = int(value) if isinstance(value, str) and value.isdecimal() else value
    if not is_ttl(ttl):
        raise ValueError(f'its TTL {value!r} is not a whole number from 0 to {MAX_TTL}')
    return int(ttl)


def _ids(block: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = block.get(name) or []
    if not isinstance(value, list) or not all(isinstance(name_, str) for name_ in value):
        raise ValueError(f"'{name}' is a list of names of targets, not {value!r}")
    return tuple(value)


def _checked_dynamic(dynamic: Mapping[str, Any]) -> Mapping[str, Any]:
    """*dynamic* itself, if it has the expected form; else ValueError."""
    pools, rules = dynamic.get('pools') or {}, dynamic.get('rules') or []
    if not (isinstance(pools, Mapping) and all(isinstance(pool, Mapping) and _are_mappings(pool.get('values', []))
                                               for pool in pools.values())):
        raise ValueError("the 'pools' of 'dynamic' are mappings with lists of 'values', each of which is a mapping")
    if not _are_mappings(rules):
        raise ValueError("the 'rules' of 'dynamic' are a list of mappings")
    for names in (pool.get('fallback') for pool in pools.values()), (rule.get('pool') for rule in rules):
        if not all(name is None or isinstance(name, str) for name in names):
            raise ValueError("a 'fallback' or 'pool' of 'dynamic' is the name of a pool")
    return dynamic


def _are_mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _owner_name(entry: Entry, zone: str) -> str:
    try:
        return normal_name(absolute(entry.name, zone))
    except (ValueError, InvalidField) as error:
        raise SourceError(source=f'{entry.path}, line {entry.line}', why=f'{entry.name!r}: {error}') from error
