"""The servers that MiniDNS is compared with: BIND, Knot and NSD, each the primary of the same zone."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

from benchmarks.transfer_data import NAME
from designate_pool.model import TsigKey
from testing.bind import Named
from testing.knot import Knotd
from testing.nsd import Nsd

#: Seconds that a server may take to load the zone.
LOADING = 300.0
_KNOT = '''
acl:
  - id: plain
    address: 127.0.0.1
    action: transfer
  - id: signed
    address: 127.0.0.1
    key: {key}
    action: transfer
zone:
  - domain: {name}
    file: "{file}"
    acl: [plain, signed]
    zonefile-load: whole
    journal-content: none
'''


def bind9(folder: pathlib.Path, zone_file: pathlib.Path, key: TsigKey) -> Named:
    return Named(folder, keys=[key],
                 statements=f'zone "{NAME}" {{ type primary; file "{zone_file}"; notify no; }};')


def knot(folder: pathlib.Path, zone_file: pathlib.Path, key: TsigKey) -> Knotd:
    # Of section templates, the one without a file stands in the fixture; so the zone's own items say where it is.
    return Knotd(folder, keys=[key], templates=_KNOT.format(key=key.name, name=NAME, file=zone_file))


def nsd(folder: pathlib.Path, zone_file: pathlib.Path, key: TsigKey) -> Nsd:
    return Nsd(folder, keys=[key], database=False, statements=f'''
zone:
    name: "{NAME}"
    zonefile: "{zone_file}"
    provide-xfr: 127.0.0.1 NOKEY
    provide-xfr: 127.0.0.1 {key.name}
''')


PEERS: dict[str, Callable[[pathlib.Path, pathlib.Path, TsigKey], Named | Knotd | Nsd]] = {
    'bind9': bind9, 'knot': knot, 'nsd': nsd}
