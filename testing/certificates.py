"""Certificates for TLS, made by openssl."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30']


class Pair(NamedTuple):
    """Paths of a certificate and its private key."""

    certificate: str
    key: str


def self_signed(path: pathlib.Path) -> Pair:
    """A certificate that nobody has signed, of the host that the *path* ends with."""
    return _make(path)


class Authority:
    """Signs certificates; ``pair.certificate`` is its own."""

    def __init__(self, folder: pathlib.Path, name: str = 'authority') -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.pair = _make(folder / name, ['-addext', 'keyUsage=critical,keyCertSign'])

    def sign(self, host: str, file: str = '') -> Pair:
        """A certificate of a host; *file*: the files' name, if it is to be another one."""
        return _make(self._folder / (file or host), [
            '-CA', self.pair.certificate, '-CAkey', self.pair.key, '-addext', f'subjectAltName=DNS:{host}',
            '-addext', 'basicConstraints=critical,CA:FALSE'])


def _make(path: pathlib.Path, options: Sequence[str] = ()) -> Pair:
    pair = Pair(f'{path}.pem', f'{path}.key')
    subprocess.run(['openssl', 'req', '-x509', *_KEY, '-subj', f'/CN={path.name}', '-out', pair.certificate,
                    '-keyout', pair.key, *options], check=True, capture_output=True)
    return pair
