"""Zones that exist elsewhere: on a server of a pool, in the files of a name server, in a PowerDNS."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Protocol

from designate_pool.cli.http.client import Client
from designate_pool.cli.http.errors import CliError, Json
from designate_pool.errors import BackendError, PoolError
from designate_pool.model import Endpoint
from designate_pool.planner import master
from designate_pool.planner.providers.base import BaseSource
from designate_pool.planner.sources import axfr, server_config
from designate_pool.planner.sources.zonefile import ZoneFileSource
from designate_pool.planner.targets.pdns import PdnsProvider
from designate_pool.planner.zone.zone import Zone, add_pairs
from designate_pool.protocol.tcp_client import TcpPeer, key_of

#: Seconds for the API: longer than it waits itself for the list of a server.
LIST_SECONDS = 660.0
#: Seconds for the transfer of a zone.
TRANSFER_SECONDS = 300.0
#: What shows that a zone is signed; the name server's keys stay with it.
SIGNED = frozenset({'RRSIG', 'DNSKEY'})


class ExistingZones(Protocol):
    """Where zones are taken from."""

    def list(self) -> Mapping[str, str]:
        """``primary``, ``secondary`` or ``member`` (of a catalog zone) by name, of zones that may not be known here."""

    def read(self, name: str) -> str:
        """The zone file of a zone.

        :raises CliError: when it cannot be read whole, or is signed
        """


class OnServer:
    """Zones of a server of a pool, by AXFR (RFC 5936).

    :param server: as the API describes it
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
        if self._catalog is not None:
            members = f'.zones.{self._catalog}\tPTR'
            return {each: 'member' for key, value in self._transfer(self._catalog).items() if key.endswith(members)
                    for each in value.split('\t')[1:]}
        found = self._client.change('POST', f'/v2/servers/{self._server["id"]}/resync', {'primary': True}, LIST_SECONDS)
        return {**dict.fromkeys(found['primary'] or (), 'primary'),
                **dict.fromkeys(found['extra'] or (), 'secondary')}

    def read(self, name: str) -> str:
        pairs = self._transfer(name)
        _refuse_signed(name, {key.rpartition('\t')[2] for key in pairs})
        zone = Zone(name)
        add_pairs(zone, pairs.items(), True)
        return ''.join(master.write(zone))

    def _transfer(self, name: str) -> dict[str, str]:
        try:
            return axfr.transfer(self._peer, name, TRANSFER_SECONDS, leave_out=())
        except (BackendError, OSError) as error:
            raise CliError(f'{name} cannot be transferred from {self._server["name"]}: {error}') from error


class InFiles:
    """Zone files: those of a ``named.conf`` or ``nsd.conf``, or those in a folder, named after their zones.

    :param suffix: of the names of files in a folder
    """

    def __init__(self, path: pathlib.Path, suffix: str) -> None:
        if path.is_dir():
            folder = ZoneFileSource('adopt', directory=str(path), file_extension=suffix)
            self._files = {name: folder.path(name) for name in folder.list_zones()}
        else:
            self._files = server_config.zone_files(path)
        self._path = path

    def list(self) -> Mapping[str, str]:
        return dict.fromkeys(self._files, 'primary')

    def read(self, name: str) -> str:
        if name not in self._files:
            raise CliError(f'{self._path} has no primary zone {name}.')
        return _from_source(ZoneFileSource('adopt', file=str(self._files[name])), name)


class InPowerDns:
    """Zones of a PowerDNS, through its HTTP API.

    :param key_file: of the api-key
    """

    def __init__(self, url: str, key_file: str | None) -> None:
        if key_file is None:
            raise CliError('A PowerDNS is asked with its api-key; give --key-file with a file that has it.')
        try:
            key = pathlib.Path(key_file).read_text(encoding='utf-8').strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CliError(f'{key_file} cannot be read: {error}') from error
        self._provider = PdnsProvider('adopt', key, api_url=url)

    def list(self) -> Mapping[str, str]:
        return dict.fromkeys(self._provider.list_zones(), 'primary')

    def read(self, name: str) -> str:
        return _from_source(self._provider, name)


def _from_source(source: BaseSource, name: str) -> str:
    zone = Zone(name)
    try:
        if not source.populate(zone, lenient=True):
            raise CliError(f'There is no zone {name}.')
    except PoolError as error:
        raise CliError(str(error)) from error
    _refuse_signed(name, {key.rpartition('\t')[2] for key in zone.packed})
    return ''.join(master.write(zone))


def _refuse_signed(name: str, types: set[str]) -> None:
    if not SIGNED.isdisjoint(types):
        raise CliError(f'{name} is signed (DNSSEC), and the pool serves zones unsigned: remove its DS records from the '
                       'parent zone, wait until they have expired, and end its signing first.')
