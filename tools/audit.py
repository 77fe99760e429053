"""Whether the libraries that we ask for, and those that are installed, are without holes that are known.

``make audit`` prints the table, and fails when setup.cfg admits a version below its line, or such a one is installed.
It sees nothing else: see CONTRIBUTING.md.
"""

from __future__ import annotations

import configparser
import importlib.metadata
import pathlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping

#: The lowest version of each library, ours or one that ours bring along, that is without known holes; and the reason.
LOWEST = {
    'certifi': ('2024.7.4', 'CVE-2024-39689: trusts roots that were withdrawn'),
    'cryptography': ('44.0.1', 'CVE-2024-12797: the OpenSSL that it brings takes a peer for one that was checked'),
    'dnspython': ('2.9.2', 'memory used up by WKS records, and names in TSIG; CVE-2023-29483: a forged answer ends a'
                           ' query'),
    'eventlet': ('0.40.3', 'CVE-2025-58068: trailers of a request are taken for another request'),
    'idna': ('3.7', 'CVE-2024-3651: quadratic time for a long name'),
    'keystonemiddleware': ('10.12.1', 'CVE-2026-22797: headers of a client are taken for those of a checked token'),
    'mako': ('1.2.2', 'CVE-2022-40023: quadratic time for a template'),
    'pymysql': ('1.1.1', 'CVE-2024-36039: keys of a JSON object reach SQL unescaped'),
    'pyyaml': ('5.4', 'CVE-2020-14343: the full loader runs code'),
    'requests': ('2.32.4', 'CVE-2024-47081: credentials of .netrc go to another host; CVE-2024-35195: a session goes on'
                           ' without checking certificates'),
    'setuptools': ('78.1.1', 'CVE-2025-47273: a download may be written anywhere'),
    'urllib3': ('2.6.3', 'CVE-2025-66418, CVE-2025-66471, CVE-2026-21441: a small answer unpacks to any size'),
    'waitress': ('3.0.1', 'CVE-2024-49768: a request after one that failed; CVE-2024-49769: a client that goes away'
                          ' keeps the server busy'),
}
SETUP = pathlib.Path(__file__).resolve().parent.parent / 'setup.cfg'


def main() -> int:
    for name, (version, reason) in LOWEST.items():
        print(f'{name} >={version}  {reason}')
    others = {package.name.lower() for package in importlib.metadata.distributions()} - LOWEST.keys()
    print(f'Nothing is known here of the {len(others)} other libraries that are installed: ask pip-audit.')
    found = [*admitted(SETUP.read_text()), *installed(_version)]
    for fault in found:
        print(f'audit: {fault}', file=sys.stderr)
    return int(bool(found))


def admitted(setup: str, lowest: Mapping[str, tuple[str, str]] = LOWEST) -> Iterator[str]:
    """What a setup.cfg asks for that may be a version with a hole."""
    parser = configparser.ConfigParser()
    parser.read_string(setup)
    texts = [parser['options']['install_requires'], *parser['options.extras_require'].values()]
    for line in (line for text in texts for line in text.strip().splitlines()):
        name, floor = re.split(r'[ <>=]', line)[0].lower(), re.search('>=([0-9.]+)', line)
        if name in lowest and (floor is None or _numbers(floor[1]) < _numbers(lowest[name][0])):
            yield f'setup.cfg asks for {line}, and {name} is safe from {lowest[name][0]} on: {lowest[name][1]}'


def installed(version: Callable[[str], str | None],
              lowest: Mapping[str, tuple[str, str]] = LOWEST) -> Iterator[str]:
    """What is installed in a version with a hole.

    :param version: of a library, by its name; None for one that is not installed
    """
    for name, (safe, reason) in lowest.items():
        there = version(name)
        if there is not None and _numbers(there) < _numbers(safe):
            yield f'{name} {there} is installed, and safe from {safe} on: {reason}'


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.match('[0-9.]*', version)[0].strip('.').split('.'))  # type: ignore[index]


if __name__ == '__main__':
    sys.exit(main())
