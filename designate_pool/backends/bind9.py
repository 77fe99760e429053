"""BIND 9, through its control channel: secondary zones added and deleted with ``addzone`` and ``delzone``.

named needs ``allow-new-zones yes``, and a ``controls`` statement that accepts the key from our address.  It keeps the
zones through a restart.  It confirms a create before it has the contents; a poll tells when they are served.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from typing import ClassVar

import dns.exception
import dns.name

from designate_pool import model
from designate_pool.backends import rndc
from designate_pool.backends.base import Backend, Deadline
from designate_pool.backends.connections import Connections
from designate_pool.errors import BackendError, BackendRefused, InvalidField

EXISTS = 'already exists'
NOT_FOUND = 'not found'
DENIED = 'permission denied'
NO_VIEW = 'no matching view'

_PLAIN_OCTETS = frozenset(b'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_')
_PLAIN_NAME = re.compile(r'[a-z0-9_][a-z0-9_.-]{0,179}')
_PLAIN_VIEW = re.compile(r'[A-Za-z0-9_-]{1,63}')
_HAS_FILE = re.compile(r'\bfile\s+"')


class Bind9(Backend):
    """A BIND server."""

    fetches_on_create = True

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        model.Option('rndc_host', "Address of named's control channel; the server's host when not set."),
        model.Option('rndc_port', "Port of named's control channel.", 'port', 953),
        model.Option('rndc_key_file', 'File with the key of the control channel, as rndc-confgen -a writes it; it is'
                     ' read again for each new connection.', 'path'),
        model.Option('rndc_key_name', 'Name of the key: which one to take from rndc_key_file, the first when not set.'),
        model.Option('rndc_key_algorithm', "Algorithm of rndc_key_secret: one of " + ', '.join(rndc.ALGORITHMS) + '.',
                     default='hmac-sha256'),
        model.Option('rndc_key_secret', 'The key in Base64; instead of rndc_key_file.', secret=True),
        model.Option('view', 'View that the zones go into; the default view when not set.'),
        model.Option('zone_file_folder', "Folder for the zones' files, as named sees it; named's own working"
                     ' directory when not set.'),
    )

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        self._host = self.options['rndc_host'] or server.host
        self._port = int(self.options['rndc_port'])
        self._view = self.options['view'] or '_default'
        self._folder = (self.options['zone_file_folder'] or '').rstrip('/')
        self._primaries = ' '.join(_primary(endpoint, server.tsig_key) for endpoint in server.primaries)
        if not _PLAIN_VIEW.fullmatch(self._view):
            raise InvalidField(field='view', why='it may hold letters, digits, hyphens and underscores only')
        _quoted(self._folder, 'zone_file_folder')
        self._key()
        self._channels = Connections(self._connect, keep=max(1, server.max_in_flight))

    def close(self) -> None:
        self._channels.close()

    def _create(self, domain: model.Domain, timeout: float) -> None:
        if not self._primaries:
            raise BackendRefused(why=f'server {self.server.label} has no primaries to transfer zones from')
        zone = _name(domain)
        path = f'{self._folder}/' if self._folder else ''
        command = (f'addzone "{_escaped(zone)}" IN {self._view} {{ type secondary;'
                   f' primaries {{ {self._primaries} }};'
                   f' file {_quoted(path + file_name(zone, self._view, domain.generation))}; }};')
        answer = self._ask(command, Deadline(timeout))
        if answer.result and answer.error != EXISTS:
            raise self._trouble('addzone', domain, answer)

    def _delete(self, domain: model.Domain, timeout: float) -> None:
        deadline = Deadline(timeout)
        where = f'"{_escaped(_name(domain))}" IN {self._view}'
        held = self._ask(f'showzone {where}', deadline)
        if self._absent('showzone', domain, held):
            return
        # named 9.18 aborts on "delzone -clean" of a secondary that was added without a file, by hand for instance.
        clean = '-clean ' if _HAS_FILE.search(held.text) else ''
        self._absent('delzone', domain, self._ask(f'delzone {clean}{where}', deadline))

    def _ping(self, timeout: float) -> None:
        answer = self._ask('null', Deadline(timeout))
        if answer.result:
            raise BackendError(why=f'the control channel answered: {answer.words}')

    def _ask(self, command: str, deadline: Deadline) -> rndc.Answer:
        return self._channels.use(lambda channel, deadline: channel.ask(command, deadline), deadline)

    def _connect(self, deadline: Deadline) -> rndc.Channel:
        return rndc.connect(self._host, self._port, self._key(), deadline)

    def _key(self) -> rndc.Key:
        name, path, secret = (self.options[f'rndc_key_{option}'] for option in ('name', 'file', 'secret'))
        if bool(path) == bool(secret):
            raise InvalidField(field='rndc_key_file', why='exactly one of rndc_key_file and rndc_key_secret is needed')
        if path:
            return rndc.Key.read(path, name)
        return rndc.Key.make(name or 'rndc-key', self.options['rndc_key_algorithm'], secret)

    def _absent(self, verb: str, domain: model.Domain, answer: rndc.Answer) -> bool:
        """Whether named says that it has no such zone.

        :raises BackendError: for any other trouble, a view that is not there included
        """
        if answer.result and (answer.error != NOT_FOUND or NO_VIEW in answer.text):
            raise self._trouble(verb, domain, answer)
        return bool(answer.result)

    @staticmethod
    def _trouble(verb: str, domain: model.Domain, answer: rndc.Answer) -> BackendError:
        why = f'{verb} {domain.name}: {answer.words}'
        if answer.error == DENIED or NO_VIEW in answer.text:
            return BackendRefused(why=why)
        return BackendError(why=why)


def file_name(zone: dns.name.Name, view: str, generation: int) -> str:
    """The zone's file: always of plain characters, and another one for each zone, view and generation.

    named removes the file of a deleted zone some time after it has confirmed the deletion; the generation keeps that
    from hitting a zone of the same name created meanwhile.  Names too long or too odd for a file are hashed; 64 digits
    are longer than a label can be, so no zone is called like another one's hash.
    """
    plain = zone.to_text(omit_final_dot=True).lower()
    if not _PLAIN_NAME.fullmatch(plain) or '..' in plain:
        plain = hashlib.sha256(zone.to_digestable()).hexdigest()
    if view != '_default':
        plain += f'@{view}'
    return f'{plain}.{generation}.db'


def _name(domain: model.Domain) -> dns.name.Name:
    try:
        return dns.name.from_text(domain.name)
    except (dns.exception.DNSException, ValueError) as error:
        raise BackendRefused(why=f'{domain.name!r} is not a domain name ({error})') from error


def _escaped(name: dns.name.Name) -> str:
    """*name* for named.conf: every octet but letters, digits, hyphen and underscore as ``\\DDD``.

    In this form no name can end the string that it stands in, or mean anything to the parser around it.
    """
    labels = (''.join(chr(octet) if octet in _PLAIN_OCTETS else f'\\{octet:03d}' for octet in label)
              for label in name.labels[:-1])
    return '.'.join(labels) + '.'


def _quoted(text: str, field: str = 'value') -> str:
    """*text* as a string in named.conf.

    :raises InvalidField: when it holds what cannot stand there
    """
    if any(character in '"\\' or not ' ' <= character <= '~' for character in text):
        raise InvalidField(field=field, why='it may hold printable ASCII only, and no quotation mark or backslash')
    return f'"{text}"'


def _primary(endpoint: model.Endpoint, key: model.TsigKey | None) -> str:
    try:
        address = ipaddress.ip_address(endpoint.host)
    except ValueError as error:
        raise InvalidField(field='primaries', why=f"'{endpoint.host}' is not an IP address") from error
    signed = f' key {_quoted(key.name, "tsig_key")}' if key else ''
    return f'{address} port {endpoint.port}{signed};'
