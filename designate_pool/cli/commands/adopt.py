"""``designate-pool zone adopt``: zones that exist on a server, in files or in a PowerDNS."""

from __future__ import annotations

import argparse
import pathlib
import time
from collections.abc import Iterator, Mapping

from designate_pool.cli import zone_wait
from designate_pool.cli.base import Argument, Lister, Shown, attributes_option, rows, wait_option
from designate_pool.cli.client import SERVER, Client, Json, of_zone
from designate_pool.cli.commands.zone_files import finished, sent
from designate_pool.cli.connection import CliError
from designate_pool.errors import BackendError, PoolError
from designate_pool.model import Endpoint
from designate_pool.planner import master
from designate_pool.planner.providers.base import BaseSource
from designate_pool.planner.providers.pool_api import zone_named
from designate_pool.planner.sources import axfr, server_config
from designate_pool.planner.sources.zonefile import ZoneFileSource
from designate_pool.planner.targets.pdns import PdnsProvider
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.tcp_client import TcpPeer, key_of

#: Seconds for the API: longer than it waits itself for the list of a server.
LIST_SECONDS = 660.0
#: Seconds for the transfer of a zone.
TRANSFER_SECONDS = 300.0
#: What shows that a zone is signed; the name server's keys stay with it.
SIGNED = frozenset({'RRSIG', 'DNSKEY'})


class OnServer:
    """Zones of a server of a pool, by AXFR (RFC 5936).

    :param endpoint: where it is asked; its own address if None
    :param key_file: of the TSIG key that transfers are signed with
    :param catalog: the name of a catalog zone there (RFC 9432), whose members are meant; None for all zones
    """

    def __init__(self, client: Client, server: Json, endpoint: Endpoint | None, key_file: str | None,
                 catalog: str | None) -> None:
        self._client = client
        self._server = server
        name, secret, algorithm = (None, None, None) if key_file is None else \
            server_config.tsig_key(pathlib.Path(key_file))
        at = endpoint or Endpoint(server['host'], server['port'])
        self._catalog = catalog
        self._peer = TcpPeer(at.host, at.port, key_of(name, secret, algorithm))

    def list(self) -> Mapping[str, str]:
        """Zones by name: ``member`` of the catalog, or ``primary`` or ``secondary`` as the server has them."""
        if self._catalog is not None:
            members = f'.zones.{self._catalog}\tPTR'
            return {pair: 'member' for key, value in self._transfer(self._catalog).items() if key.endswith(members)
                    for pair in value.split('\t')[1:]}
        compared = self._client.json('POST', f'/v2/servers/{self._server["id"]}/resync', {'primary': True},
                                     LIST_SECONDS)
        return {**dict.fromkeys(compared['primary'] or (), 'primary'),
                **dict.fromkeys(compared['extra'] or (), 'secondary')}

    def read(self, name: str) -> str:
        """A zone as a zone file; CliError when it is signed, or cannot be transferred."""
        pairs = self._transfer(name)
        _refuse_signed(name, {key.rpartition('\t')[2] for key in pairs})
        zone = Zone(name)
        zone.add_pairs(pairs, True)
        return ''.join(master.write(zone))

    def _transfer(self, name: str) -> dict[str, str]:
        try:
            return axfr.transfer(self._peer, name, TRANSFER_SECONDS, leave_out=())
        except (BackendError, OSError) as error:
            raise CliError(f'{name} cannot be transferred from {self._server["name"]}: {error}') from error


class InFiles:
    """Zone files: those of a ``named.conf`` or ``nsd.conf``, or those in a folder, named after their zones."""

    def __init__(self, path: pathlib.Path, suffix: str) -> None:
        if path.is_dir():
            folder = ZoneFileSource('adopt', directory=str(path), file_extension=suffix)
            self._files = {name: folder.path(name) for name in folder.list_zones()}
        else:
            self._files = server_config.zone_files(path)
        self._path = path

    def list(self) -> Mapping[str, str]:
        """Zones by name, each ``primary``."""
        return dict.fromkeys(self._files, 'primary')

    def read(self, name: str) -> str:
        """A zone as a zone file; CliError when it is signed, or there is none of this name."""
        if name not in self._files:
            raise CliError(f'{self._path} has no primary zone {name}.')
        return _from_source(ZoneFileSource('adopt', file=str(self._files[name])), name)


class InPowerDns:
    """Zones of a PowerDNS, through its HTTP API, with the api-key in *key_file*."""

    def __init__(self, url: str, key_file: str | None) -> None:
        if key_file is None:
            raise CliError('A PowerDNS is asked with its api-key; give --key-file with a file that has it.')
        try:
            key = pathlib.Path(key_file).read_text(encoding='utf-8').strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CliError(f'{key_file} cannot be read: {error}') from error
        self._provider = PdnsProvider('adopt', key, api_url=url)

    def list(self) -> Mapping[str, str]:
        """Zones by name, each ``primary``."""
        return dict.fromkeys(self._provider.list_zones(), 'primary')

    def read(self, name: str) -> str:
        """A zone as a zone file; CliError when it is signed, or there is none of this name."""
        return _from_source(self._provider, name)


def _from_source(source: BaseSource, name: str) -> str:
    zone = Zone(name)
    if not source.populate(zone, lenient=True):
        raise CliError(f'There is no zone {name}.')
    _refuse_signed(name, {key.rpartition('\t')[2] for key in zone.packed})
    return ''.join(master.write(zone))


def _refuse_signed(name: str, types: set[str]) -> None:
    if not SIGNED.isdisjoint(types):
        raise CliError(f'{name} is signed (DNSSEC), and an import would break its signatures, since the pool has other '
                       'name servers and serials: create it as a secondary zone of the server that signs it; or remove '
                       'its DS records from the parent zone, wait until they have expired, and end its signing first.')


#: Their lists say ``primary``, ``secondary`` or ``member`` (of a catalog zone) by name of a zone that may not be known
#: here.
ExistingZones = OnServer | InFiles | InPowerDns


class ZoneAdopt(Lister):
    """Take over zones that a name server has already, or list them.

    Without ZONE and --all the zones are listed that no zone here explains, and nothing is changed. Taking over a zone
    creates it here with the same records, the name servers of its pool, and a serial above that of the name server; the
    server keeps serving it. A primary zone on a server of the pool becomes a secondary one of MiniDNS if the server's
    section has adopts_zones. Zones that are here already are left alone, so the command can be repeated.

    The exit code is 1 if a zone could not be taken over; with --wait also 3 or 4, see 'zone wait'.
    """

    arguments = (
        Argument('zones', metavar='ZONE', nargs='*', help='the names of the zones'),
        Argument('--from', dest='source', required=True, metavar='SOURCE',
                 help='a server of a pool (id, name or host), whose zones are transferred; a named.conf or nsd.conf, '
                      'or a folder of zone files; or the URL of the API of a PowerDNS'),
        Argument('--all', action='store_true', help='take over all zones that would be listed'),
        Argument('--pool', metavar='POOL', help="the pool that they go to, by name or id; not given: the server's, "
                                                'or the one that the attributes choose, or the default one'),
        attributes_option('by which the pool is chosen'),
        Argument('--key-file', metavar='FILE', help='with the TSIG key of the transfers, as tsig-keygen writes it, '
                                                    'or with the api-key of the PowerDNS'),
        Argument('--address', type=Endpoint.parse, metavar='HOST[:PORT]',
                 help='where the server is asked for transfers; not given: its own address'),
        Argument('--catalog', metavar='NAME', help='a catalog zone (RFC 9432) of the server, whose members are '
                                                   'meant, and not all zones'),
        Argument('--suffix', default='.zone', metavar='TEXT', help="what follows a zone's name in the names of the "
                                                                   'files of a folder; .zone if not given'),
        wait_option('enough servers serve each'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        existing, pool = self._source(parsed_args)
        pool = self.pool_id(parsed_args) or pool
        if not parsed_args.zones and not parsed_args.all:
            return rows(('name', 'type'), ({'name': name, 'type': kind} for name, kind in existing.list().items()
                                           if self._known(name) is None))
        names = [of_zone(zone) for zone in parsed_args.zones] or [*existing.list()]
        return rows(('name', 'result', 'id', 'serial'), self._adopt_each(existing, names, pool, parsed_args))

    def _source(self, parsed_args: argparse.Namespace) -> tuple[ExistingZones, dict[str, str]]:
        """Where the zones are, and the pool that they belong to."""
        source, path = parsed_args.source, pathlib.Path(parsed_args.source)
        if source.startswith(('http://', 'https://')):
            return InPowerDns(source, parsed_args.key_file), {}
        if path.exists():
            return InFiles(path, parsed_args.suffix), {}
        server = self.client.find(SERVER, source)
        return (OnServer(self.client, server, parsed_args.address, parsed_args.key_file,
                         None if parsed_args.catalog is None else of_zone(parsed_args.catalog)),
                {} if parsed_args.attributes else {'pool_id': server['pool_id']})

    def _adopt_each(self, found: ExistingZones, wanted: list[str], pool: dict[str, str],
                    parsed_args: argparse.Namespace) -> Iterator[Json]:
        created: list[tuple[Json, float]] = []
        for name in wanted:
            sent_at = time.monotonic()
            try:
                zone, result = self._known(name), 'is here already'
                if zone is None:
                    zone, result = self._adopt(found.read(name), name, pool, parsed_args), 'taken over'
                    created.append((zone, sent_at))
                elif zone['action'] == 'DELETE':
                    raise CliError(f'{name} is still being deleted here: take it over when that is done.')
            except (CliError, PoolError) as error:
                self.exit_code = 1
                zone, result = {}, str(error)
            yield {'name': name, 'result': result, 'id': zone.get('id'), 'serial': zone.get('serial')}
        if parsed_args.wait is not None:
            for zone, sent_at in created:
                change = zone_wait.PendingChange(zone['id'], zone['name'], sent_at, zone['serial'], False)
                code = zone_wait.follow(self.client, change, parsed_args.wait, self.app.stderr)
                self.exit_code = self.exit_code or code

    def _adopt(self, text: str, name: str, pool: dict[str, str], parsed_args: argparse.Namespace) -> Json:
        sent_at = time.monotonic()
        task = finished(self.client, sent(self.client, name, text.encode(), parsed_args.attributes, pool), sent_at,
                        self.app.stderr)
        if task['status'] == 'PENDING':
            raise CliError(f'{name} is still being imported.')
        if task['status'] != 'COMPLETE':
            raise CliError(task['message'])
        if ';' in task['message']:  # more than that it was imported
            self.app.stderr.write(f'{task["message"]}.\n')
        return self.client.zone(task['zone_id'])

    def _known(self, name: str) -> Json | None:
        """The zone of this name that is here already."""
        return zone_named(name, self.client.every('/v2/zones', 'zones', name=name))
