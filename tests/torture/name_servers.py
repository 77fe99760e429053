"""What the kit does to name servers of each make behind the pool's back, and asks them apart from DNS."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from typing import Any

import dns.name
import requests

from designate_pool.model import TsigKey
from testing.bind import Named
from testing.daemon import Daemon
from testing.knot import Knotd
from testing.nsd import Nsd
from testing.pdns import PowerDns
from tests.torture.history import foreign_rrset

#: The generation in the name of a zone's file, and what stands behind it.
_GENERATION = re.compile(r'\.(\d+)(\.[a-z]+)*')


def drop(daemon: Any, name: str) -> None:
    """Remove a zone with all that the server keeps of it.

    :raises AssertionError: when the server does not
    """
    if isinstance(daemon, Named):
        assert not daemon.command(f'delzone -clean {name}').result
    elif isinstance(daemon, Nsd):
        assert daemon.control('delzone', name).endswith('ok\n')
    elif isinstance(daemon, Knotd):
        daemon.change(['conf-unset', f'zone[{name}]'])
    elif isinstance(daemon, PowerDns):
        _ask_api(daemon, 'DELETE', name).raise_for_status()


def write_foreign(daemon: PowerDns, name: str) -> None:
    """Write an RRset into a zone that somebody else feeds by records, as another user of the server does.

    :raises requests.RequestException: when the server does not take it
    """
    (owner, rtype), (ttl, rdatas) = foreign_rrset(name)
    _ask_api(daemon, 'PATCH', name, {'rrsets': [{
        'name': owner, 'type': rtype, 'ttl': ttl, 'changetype': 'REPLACE',
        'records': [{'content': each, 'disabled': False} for each in rdatas]}]}).raise_for_status()


def refuses_api_key(daemon: PowerDns) -> bool:
    """Whether it refuses the key of its API that the pool uses; not, when it does not answer."""
    try:
        return _ask_api(daemon, 'GET').status_code == requests.codes.unauthorized
    except requests.RequestException:
        return False


def _ask_api(daemon: PowerDns, verb: str, zone: str = '', body: Any = None) -> requests.Response:
    return requests.request(verb, f'{daemon.api_url}/api/v1/servers/localhost/zones{zone and "/"}{zone}', json=body,
                            headers={'X-API-Key': daemon.api_key}, timeout=5)


def replace_key(daemon: Any, key: TsigKey, old: str, new: str) -> None:
    """Give a server another secret for a key.

    :raises AssertionError: when the server does not take it
    """
    if isinstance(daemon, Named):
        daemon.reconfigure(old, new)
    elif isinstance(daemon, Knotd):
        daemon.change(['conf-set', f'key[{key.name}].secret', new])
    elif isinstance(daemon, Nsd):
        assert daemon.control('update_tsig', key.name, new).endswith('ok\n')


def ask_control(daemon: Any) -> None:
    """Ask a server by what the pool controls it by; some exception when it does not answer."""
    if isinstance(daemon, Named):
        daemon.command('status')
    elif isinstance(daemon, Nsd):
        assert daemon.control('status').startswith('version')
    elif isinstance(daemon, Knotd):
        daemon.knotc('-t', '20', 'status')
    elif isinstance(daemon, PowerDns):
        _ask_api(daemon, 'GET')


def leftovers(daemon: Daemon, living: Collection[str], gone: Collection[str]) -> list[str]:
    """What a server keeps of zones that there are no more."""
    found = [f'{name} is configured' for name in gone if is_configured(daemon, name)]
    files = [str(path.relative_to(daemon.folder)) for path in daemon.folder.rglob('*') if path.is_file()]
    return found + [f'the file {file}' for file in leftover_files(files, living, gone)]


def leftover_files(files: Iterable[str], living: Collection[str], gone: Collection[str]) -> list[str]:
    """Which of some paths are of zones that there are no more, or of a former one of a living zone's name."""
    found = []
    held: dict[tuple[str, str], list[tuple[int, str]]] = {}
    stems = {stem: name for name in (*living, *gone) for stem in _stems(name)}
    gone_names = set(gone)
    for path in sorted(files):
        folder, _, file = path.rpartition('/')
        stem = next((each for each in stems if file == each or file.startswith(f'{each}.')), None)
        generation = None if stem is None else _GENERATION.fullmatch(file.removeprefix(stem))
        if stem is not None and stems[stem] in gone_names:
            found.append(path)
        elif stem is not None and generation is not None:
            held.setdefault((folder, stem), []).append((int(generation[1]), path))
    for paths in held.values():
        newest = max(number for number, _ in paths)
        found += [path for number, path in paths if number < newest]
    return found


def _stems(name: str) -> tuple[str, str]:
    """With which names of files of a zone begin: its own, or a hash of it."""
    return name.rstrip('.'), hashlib.sha256(dns.name.from_text(name).to_digestable()).hexdigest()


def is_configured(daemon: Any, name: str) -> bool:
    """Whether a server has a zone, with contents or without."""
    if isinstance(daemon, Named):
        return daemon.command(f'showzone {name}').result == 0
    if isinstance(daemon, Nsd):
        return daemon.holds(name)
    if isinstance(daemon, Knotd):
        return name in daemon.knotc('conf-read', 'zone.domain').split()
    assert isinstance(daemon, PowerDns)
    return name in {each.to_text() for each in daemon.zones()}
