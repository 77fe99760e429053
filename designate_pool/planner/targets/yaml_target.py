"""octoDNS's YAML as a target.

The invariant: records that a plan does not change stay as they are written, and each file is replaced atomically.  A
name stays in its file, so that an interrupted plan leaves no record in two files and can be applied again.
"""

from __future__ import annotations

import pathlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from designate_pool.errors import BackendError, InvalidField, SourceError
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import BaseProvider
from designate_pool.planner.sources import yaml_files
from designate_pool.planner.sources import yaml_rdata as values
from designate_pool.planner.sources.yaml_source import Entry, YamlSource, absolute, entry_data
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import normal_name
from designate_pool.protocol.rrset import RRset

#: Types whose data is always the same after writing and reading YAML.
_UNCHANGED_TYPES = frozenset({'A', 'AAAA', 'CNAME', 'DNAME', 'MX', 'NS', 'OPENPGPKEY', 'PTR', 'SRV'})
_CATCH_ALL = ('', '*')


class YamlProvider(YamlSource, BaseProvider):
    """A folder of octoDNS's YAML that is read and written; the options are those of octoDNS's class of this name."""

    def _process_desired_zone(self, desired: Zone) -> Zone:
        desired = super()._process_desired_zone(desired)
        for rrset in desired:
            if rrset.type not in _UNCHANGED_TYPES and rrset.extra.is_for(self.id):
                self._normalize_data(desired, rrset)
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
        for rrset in new.values():
            home = homes.get(rrset.name)
            name = home.name if home else self._relative(rrset.name, plan.zone)
            path = home.path if home else self._new_file(name, plan.zone)
            documents[path][name].append(entry_data(rrset, name, self.default_ttl, self.escaped_semicolons))
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
            document = {name: entry[0] if len(entry) == 1 else sorted(entry, key=_type)
                        for name, entry in documents.get(path, {}).items() if entry}
            if not document and self._is_split(path) and exists:
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

    def _is_split(self, path: pathlib.Path) -> bool:
        return self.split_extension is not None and path.parent != self.directory

    def _relative(self, name: str, zone: str) -> str:
        return '' if name == zone else values.unicode_name(name.removesuffix('.' if zone == '.' else f'.{zone}'))

    def _normalize_data(self, desired: Zone, found: RRset) -> None:
        """Replace *found* in *desired* by what is read after writing it to YAML, if that differs."""
        try:
            name = self._relative(found.name, desired.name)
            entry = Entry(self.directory, '', 0, entry_data(found, name, self.default_ttl, self.escaped_semicolons))
            again = self.rrset_of(entry, found.name, lenient=True)
        except (ValueError, SourceError) as error:
            self.supports_warn_or_except(f'it cannot hold {found.name} {found.type} ({error})', 'it is left out')
            desired.remove_record(found)
            return
        assert again is not None
        if again.rdatas != found.rdatas:
            self.log.info('%s: %s %s becomes %s', self.id, found.name, found.type, ', '.join(again.rdatas))
            desired.add_record(found._replace(rdatas=again.rdatas), replace=True, lenient=True)


def _owner_name(entry: Entry, zone: str) -> str:
    try:
        return normal_name(absolute(entry.name, zone))
    except (ValueError, InvalidField) as error:
        raise SourceError(source=f'{entry.path}, line {entry.line}', why=f'{entry.name!r}: {error}') from error


def _type(data: Mapping[str, Any]) -> str:
    return str(data.get('type'))
