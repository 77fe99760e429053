"""``designate-pool dump``, ``compare`` and ``validate``: zones as the configuration's sources have them."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Callable

from designate_pool.cli.base import Argument, Shown, TextCommand, all_columns
from designate_pool.cli.client import Json, of_zone
from designate_pool.cli.commands.plans import of_changes
from designate_pool.cli.commands.sync_base import SyncCommand, plural, zone_names
from designate_pool.cli.connection import CliError
from designate_pool.errors import BadConfiguration, SourceError
from designate_pool.planner import master
from designate_pool.planner.engine import Setup, SyncEngine, ZoneSetting, find
from designate_pool.planner.plan.plan import change_document, change_of
from designate_pool.planner.providers.base import NOT_DNS, BaseSource
from designate_pool.planner.run_report import lines_of
from designate_pool.planner.sources.zonefile import SLASH, ZoneFileSource
from designate_pool.planner.targets.pool import NOT_EXPORTED, PoolProvider
from designate_pool.planner.targets.yaml_target import YamlProvider
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import normal_name
from designate_pool.protocol.rrset import NO_EXTRA

#: The end of zone files' names, after that of the zone without its final dot.
EXTENSION = '.zone'
#: The word for the pool itself, unless the configuration has something of that id.
POOL = 'pool'
DIFFERENT = 2
#: The id of a target that is a folder of dumped files.
DUMP = 'dump'


def _zone_file(zone: Zone, folder: pathlib.Path) -> str:
    """Write a zone file completely or not at all: into a temporary file that is renamed."""
    zone = zone.copy()
    for rrset in zone.of_types(NOT_DNS):
        zone.remove_record(rrset)
    path = folder / f'{zone.name.removesuffix(".").replace("/", SLASH)}{EXTENSION}'
    temporary = folder / f'.{path.name}.new'
    try:
        with temporary.open('w', encoding='utf-8') as file:
            file.writelines(master.write(zone))
        temporary.replace(path)
    except BaseException:  # Ctrl-C leaves no partial file behind either
        temporary.unlink(missing_ok=True)
        raise
    return str(path)


def _yaml(zone: Zone, folder: pathlib.Path) -> str:
    target = YamlProvider(DUMP, directory=str(folder), root_ns_warnings=False)
    plan = target.plan(zone, lenient=True)
    if plan is not None:
        target.apply(plan)
    return str(target.zone_file(zone.name))


#: By name: a function that writes a zone into a folder and returns the path of the file.
FORMATS: dict[str, Callable[[Zone, pathlib.Path], str]] = {'zone': _zone_file, 'yaml': _yaml}


class DumpCommand(SyncCommand):
    """Write zones into files, as their sources and processors give them: one file for each zone."""

    arguments = (
        Argument('zones', nargs='*', metavar='ZONE', help='the final dot may be left out; all zones of the '
                                                          'configuration if not given, or of the --source'),
        Argument('--source', action='append', default=[], metavar='ID',
                 help="read this instead of the zone's own sources, for example a target; also for zones that the "
                      'configuration does not have; may be given more than once'),
        Argument('--output', required=True, metavar='FOLDER', help='created if it does not exist'),
        Argument('--format', choices=list(FORMATS), default='zone', dest='form',
                 help="'zone' for zone files (RFC 1035), 'yaml' for octoDNS's; 'zone' if not given"))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        engine, zones = _engine_and_zones(self.setup(parsed_args), parsed_args)
        folder = pathlib.Path(parsed_args.output)
        for name in zones:
            try:
                zone = engine.dump(name, parsed_args.source)
            except SourceError as error:
                if parsed_args.zones or error.type not in NOT_EXPORTED:
                    raise
                self.app.stderr.write(f'{name} is left out: {error}\n')
                continue
            try:
                folder.mkdir(parents=True, exist_ok=True)
                file = FORMATS[parsed_args.form](zone, folder)
            except OSError as error:
                raise CliError(f'{error.filename or folder} cannot be written: {error.strerror or error}.') from error
            self.app.stdout.write(f'{name} {plural(len(zone), "RRset")} {file}\n')
            self._report_lost(zone, parsed_args.form)
        return 0

    def _report_lost(self, zone: Zone, form: str) -> None:
        """Say how much of *zone* its file lacks."""
        if form == 'zone':
            other_types = {rrset.key for rrset in zone.of_types(NOT_DNS)}
            lost = len({key for key, extra in zone.extras.items() if extra != NO_EXTRA} | other_types)
            why = 'have settings or a type that a zone file has no words for; --format yaml has them'
        else:
            lost = sum(1 for extra in zone.extras.values() if not extra.is_for(DUMP))
            why = 'are for some targets only, or ignored, and were left out'
        if lost:
            self.app.stderr.write(f'{zone.name}: {lost} RRsets {why}.\n')


class CompareCommand(SyncCommand, TextCommand):
    """Show what has to change in B so that a zone is the same in A and B.

    A and B are ids of the configuration, paths of zone files, or 'pool'.  The exit code is 0 when they are the same,
    2 when they differ.
    """

    arguments = (
        *(Argument(side, metavar=side.upper(), help="an id of the configuration, a zone file, or 'pool'")
          for side in 'ab'),
        Argument('zone', metavar='ZONE', help='the final dot may be left out'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        setup = self.setup_if_any(parsed_args)
        name = normal_name(of_zone(parsed_args.zone))
        sides = {id_: self._side(setup, id_) for id_ in (parsed_args.a, parsed_args.b)}
        zones = {name: ZoneSetting(), **(setup.zones if setup is not None else {})}
        providers = {**(setup.providers if setup is not None else {}), **sides}
        together = dataclasses.replace(setup, zones=zones, providers=providers) if setup is not None \
            else Setup(zones, providers)
        changes = [change for change in SyncEngine(together).compare([parsed_args.a], [parsed_args.b], name)
                   if (change.name, change.types) != (name, ('NS',))
                   or all(side.SUPPORTS_ROOT_NS for side in sides.values())]
        self.exit_code = DIFFERENT if changes else 0
        return all_columns({'zone': name, 'a': parsed_args.a, 'b': parsed_args.b,
                            'changes': [change_document(change) for change in changes]})

    def text(self, found: Json) -> str:
        changes = [change_of(change) for change in found['changes']]
        if not changes:
            return f'{found["zone"]} is the same in {found["a"]} and {found["b"]}.\n'
        lines = [f'{found["zone"]} in {found["b"]} differs from {found["a"]}: {plural(len(changes), "change")}',
                 *of_changes(changes)]
        return '\n'.join(lines) + '\n'

    def _side(self, setup: Setup | None, given: str) -> BaseSource:
        if setup is not None and given in setup.providers:
            return setup.providers[given]
        if given == POOL:
            connection = self.connection(setup)
            return PoolProvider(POOL, url=connection.url, token=connection.token or '')
        if os.path.isfile(given):
            return ZoneFileSource(given, file=given, check_origin=False)
        ids = ', '.join(dict.fromkeys([*(setup.providers if setup is not None else ()), POOL]))
        raise CliError(f'{given} is neither a zone file nor one of {ids}.')


class ValidateCommand(SyncCommand):
    """Check the configuration, and every zone as its sources have it; nothing is planned."""

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        engine = SyncEngine(self.setup(parsed_args))
        with contextlib.closing(engine):
            errors = engine.validate()
            if errors:
                raise BadConfiguration(count=len(errors), listing=''.join('\n  ' + '\n    '.join(lines_of(error))
                                                                          for error in errors))
            self.app.stdout.write(f'{plural(len(engine.zones()), "zone")} can be read, and nothing is wrong.\n')
        return 0


def _engine_and_zones(setup: Setup, parsed_args: argparse.Namespace) -> tuple[SyncEngine, list[str]]:
    """The engine that dumps, and the names of the zones; CliError for zones not in the configuration."""
    engine = SyncEngine(setup)
    names = [normal_name(zone_name) for zone_name in zone_names(parsed_args.zones)]
    configured = engine.zones(is_complete=not names and not parsed_args.source)
    if not parsed_args.source:
        unknown = [name for name in names if name not in configured]
        if unknown:
            engine.zones(is_complete=True)  # a source that cannot list its zones may have it
            raise CliError(f'There is no {" and no ".join(unknown)} in the configuration; with --source it need '
                           'not be.')
        return engine, names or configured
    if not names:
        names = sorted({zone_name for id in parsed_args.source
                        for zone_name in find(setup.providers, 'source', id).list_zones()})
    own = {name: ZoneSetting(sources=tuple(parsed_args.source)) for name in names if name not in configured}
    return SyncEngine(dataclasses.replace(setup, zones={**setup.zones, **own})), names
