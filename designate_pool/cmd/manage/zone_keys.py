"""Files with the private keys of zones."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Iterator

from designate_pool.errors import Refused


def write(folder: str, files: Iterable[tuple[str, str, str]]) -> Iterator[pathlib.Path]:
    """Write keys to new files of a folder; the paths of those with private keys, which only their owner can read."""
    for name, public, private in files:
        for suffix, text, mode in (('private', private, 0o600), ('key', public, 0o644)):
            path = pathlib.Path(folder, f'{name}.{suffix}')
            try:
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), 'w', encoding='ascii') as file:
                    file.write(text)
            except OSError as error:
                raise Refused('file', f'{path} cannot be written: {error.strerror}') from error
        yield pathlib.Path(folder, f'{name}.private')


def read(path: str) -> tuple[str, str]:
    """The text of a file with a private key, and that of the file with its DNSKEY record beside it."""
    try:
        return pathlib.Path(path).read_text(), pathlib.Path(path).with_suffix('.key').read_text()
    except (OSError, ValueError) as error:
        raise Refused('file', f'{path} and the file with the suffix .key beside it cannot be read: {error}') from None
