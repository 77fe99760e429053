"""Convert the text of an option to its value.

Every function raises :class:`ValueError` for a wrong text.  The message may be shown: it never contains a secret.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping

from dns import exception as dns_exception, name as dns_name

from designate_pool.model import Endpoint, Option, TsigKey
from designate_pool.protocol import tsig

_TRUE = {'true', '1', 'yes', 'on'}
_FALSE = {'false', '0', 'no', 'off'}
_HOST_LABEL = re.compile(r'(?!-)[a-z0-9_-]{1,63}(?<!-)', re.IGNORECASE)


def secret(text: str) -> str:
    """The secret itself, or the contents of ``file:PATH`` or ``env:NAME``.

    One newline at the end of a file is removed; nothing else is changed.
    """
    path = secret_file(text)
    if path is not None:
        try:
            with open(path, encoding='utf-8') as file:
                return file.read().removesuffix('\n').removesuffix('\r')
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else 'it is not UTF-8 text'
            raise ValueError(f'cannot read the file {path}: {reason}') from None
    kind, _, rest = text.partition(':')
    if kind == 'env':
        if rest not in os.environ:
            raise ValueError(f'the environment has no variable {rest}')
        return os.environ[rest]
    return text


def secret_file(text: str) -> str | None:
    """The path in ``file:PATH``; None if *text* is something else."""
    kind, _, path = text.partition(':')
    return path if kind == 'file' else None


def port(text: str) -> int:
    """A port from 1 to 65535."""
    if not re.fullmatch(r'[0-9]{1,5}', text) or not 1 <= int(text) <= 65535:
        raise ValueError(f'{text!r} is not a port from 1 to 65535')
    return int(text)


def endpoints(text: str, default_port: int) -> tuple[Endpoint, ...]:
    """One or more endpoints, separated by commas."""
    parsed = tuple(Endpoint.parse(part.strip(), default_port) for part in text.split(',') if part.strip())
    if not parsed:
        raise ValueError('at least one address is needed')
    return parsed


def host(text: str) -> str:
    """A host name or IP address, without a port."""
    try:
        return str(ipaddress.ip_address(text.removeprefix('[').removesuffix(']')))
    except ValueError:
        pass
    if re.fullmatch(r'(\[.*\]|[^:]+):[0-9]+', text):
        raise ValueError(f'{text!r} has a port in it; give the port with the option port')
    labels = text.removesuffix('.').split('.')
    if len(text) > 253 or labels[-1].isdigit() or not all(_HOST_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f'{text!r} is neither a host name nor an IP address')
    return text.lower()


def zone(text: str) -> str:
    """The name of a zone: absolute, lower case, with the final dot."""
    try:
        name = dns_name.from_text(text)
    except (dns_exception.DNSException, UnicodeError):
        name = dns_name.root
    if name == dns_name.root:
        raise ValueError(f'{text!r} is not the name of a zone')
    return name.to_text().lower()


def tsig_key(text: str, keys: Mapping[str, TsigKey | None]) -> TsigKey | None:
    """``name:algorithm:base64``, or the name of a section ``[tsig:<name>]``.

    :param keys: the keys of the sections; None for a wrong one, which has been noted
    """
    text = secret(text).strip()
    if ':' not in text:
        if text not in keys:
            # *text* may be a secret that was written in place of a key; the names of sections are not secret.
            names = ', '.join(sorted(keys)) or 'there are none'
            raise ValueError(f'neither name:algorithm:base64 nor the name of a [tsig:<name>] section ({names})')
        return keys[text]
    parts = text.split(':')
    if len(parts) != 3:
        raise ValueError('a TSIG key is written name:algorithm:base64')
    return make_key(*parts)


def make_key(name: str, algorithm: str, shared: str) -> TsigKey:
    """A checked TSIG key: its name lower case and absolute, its algorithm as in DNS messages."""
    if not tsig.is_name(name):
        raise tsig.InvalidKey('name', tsig.NAME)
    key = tsig.key_from(TsigKey(name, algorithm, shared))
    return TsigKey(key.name.to_text().lower(), key.algorithm.to_text(omit_final_dot=True), shared)


def converted(option: Option, text: str, keys: Mapping[str, TsigKey | None]) -> object:
    """The value of *option* that *text* means."""
    if option.kind == 'tsig_key':
        return tsig_key(text, keys)
    plain = secret(text) if option.secret else text
    try:
        value = _KINDS[option.kind](plain)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if option.minimum is not None and value < option.minimum:
                raise ValueError(f'{value} is less than {option.minimum:g}')
            if option.maximum is not None and value > option.maximum:
                raise ValueError(f'{value} is more than {option.maximum:g}')
    except ValueError:
        if not option.secret:
            raise
        raise ValueError(f'the value is not of the kind {option.kind} or out of range') from None
    return value


def _whole(text: str) -> int:
    if not re.fullmatch(r'[+-]?[0-9]{1,18}', text):
        raise ValueError(f'{text!r} is not a whole number')
    return int(text)


def _number(text: str) -> float:
    if not re.fullmatch(r'[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)', text):
        raise ValueError(f'{text!r} is not a number')
    return float(text)


def _truth(text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise ValueError(f'{text!r} is not true or false')
    return text.lower() in _TRUE


def _filled(text: str) -> str:
    if not text:
        raise ValueError('it is empty')
    return text


_KINDS: dict[str, Callable[[str], object]] = {
    'str': str,
    'int': _whole,
    'float': _number,
    'bool': _truth,
    'port': port,
    'path': _filled,
    'host': host,
    'endpoints': lambda text: endpoints(text, 53),
}
