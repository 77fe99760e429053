"""Knot DNS, through its control socket: secondary zones in its configuration database, changed in transactions.

knotd has to run from a configuration database (``knotd -C``).  All zones of a server share one section ``remote``,
which holds the primaries and the key that the server's section has now, and one ``acl``, by which knotd takes NOTIFY
from them and questions signed with the key, and lets them transfer the zones: changing these changes them all, and
costs knotd nothing.  Committing costs it time for every zone that it holds, so up to a thousand are changed at once,
and under load more gather before the next commit.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import logging
import os
import random
import re
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import ClassVar, TypeVar

import dns.exception
import dns.name

from designate_pool import model
from designate_pool.backends import soa_check
from designate_pool.backends.base import Backend, Outcomes, a_probe
from designate_pool.backends.capabilities import Capabilities
from designate_pool.backends.knot import config_transaction
from designate_pool.backends.knot.config_transaction import Change, Refused, Settings, TransactionIsOpen
from designate_pool.backends.knot.control_protocol import Block, KnotControl, error_in
from designate_pool.backoff import Backoff
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, InvalidField
from designate_pool.model import Reason

LOG = logging.getLogger(__name__)
T = TypeVar('T')

#: Octets that the path of a unix socket can have.
LONGEST_PATH = 107
#: The part of a call's time that it waits for somebody else's transaction to end.
PATIENCE = 0.8
#: Seconds between two tries to begin a transaction, from and to.
PAUSE = Backoff(0.25, factor=1.0, jitter=(0.2, 1.0))

#: Seconds in which a zone that was just added has to be answered for.
KEY_SECONDS = 2.0

#: What Knot calls a zone's file by itself.
ZONE_FILE = '%s.zone'
#: Octets of a name that a file's name has room for, with what may stand around it.
LONGEST_IN_FILE = 200

_PLAIN_NAME = re.compile(r'[a-z0-9_-]+(\.[a-z0-9_-]+)*\.')

_ADVICE = {
    'permission denied': 'let the user that the pool manager runs as into the group of knotd, which its socket is for',
    'has no template': 'add the template to the configuration of Knot, or correct the option template',
    'has no key': "add the key, with its secret, to the section key of Knot's configuration",
    "without a 'master'": "see what the zone is there for, and remove it with knotc's conf-unset if it may go",
    soa_check.NO_KEY: "give the key in the section key of Knot's configuration the name, algorithm and secret of "
                      'tsig_key, and set both clocks by NTP',
    'configuration transaction': 'see who changes the configuration of Knot; "knotc conf-diff" shows what is open',
}


class Knot(Backend):
    """A Knot DNS server."""

    # There is one transaction in all of a knotd.
    capabilities = Capabilities(fetches_on_create=True, tries_key=True, batch_size=1000, gathers_below=100,
                                most_in_flight=1)

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        model.Option('control_socket', "The unix socket of knotd's control interface.", 'path', '/run/knot/knot.sock',
                     private=True),
        model.Option('template', "The template in Knot's configuration that the zones take their other settings from;"
                     ' its template default when not set.'),
    )

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        self._path = str(self.options['control_socket'])
        self._template = self.options['template'] or ''
        self._ours = f'{config_transaction.OURS}{server.id}'
        self._primaries = [_address(endpoint) for endpoint in server.primaries]
        self._key = [] if server.tsig_key is None else [_named(server.tsig_key.name, 'tsig_key')]
        if len(os.fsencode(self._path)) > LONGEST_PATH:
            raise InvalidField(field='control_socket', why=f'its path is longer than {LONGEST_PATH} octets')

    def check(self) -> list[model.Finding]:
        """What :meth:`Backend.check` finds, and whether Knot takes what is signed with the TSIG key.

        It refuses what it has no zone for before it looks at the signature, so it is asked for one that it has.
        """
        findings = super().check()
        if not self._key or any(finding.serious for finding in findings):
            return findings
        tried = self._call('ask with the key', self._try_key)
        if not tried.ok:
            findings.append(model.Finding(f'{self._key[0]}: {tried.error}', self._advice(tried)))
        return findings

    def _create_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        if not self._primaries:
            raise BackendRefused(why=f'server {self.server.label} has no primaries to transfer zones from',
                                 reason=Reason.NO_PRIMARIES)
        return self._each_named(domains, self._hold, deadline)

    def _delete_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        return self._each_named(domains, self._drop, deadline)

    def _refetch_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        return self._each_named(domains, lambda control, names, deadline: _each_told(
            control, names, [[{'command': 'zone-retransfer', 'zone': name}] for name in names], deadline), deadline)

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[Mapping[str, int | None], bool]:
        serials: dict[str, int | None] = {}
        with self._connected(deadline) as control:
            own = ''
            for unit in control.ask({'command': 'zone-status', 'filters': 'rs'}, deadline):
                if 'error' in unit:
                    raise BackendError(why=f"zone-status: {unit['error']}")
                name = unit.get('zone', '')
                if unit.get('type') == 'role':  # comes first
                    own = name if unit.get('data') != 'slave' else ''
                if unit.get('type') != 'serial' or name == own:
                    continue
                plain = _PLAIN_NAME.fullmatch(name)
                serials[name if plain else config_transaction.absolute(name)] = _serial(unit.get('data'))
        return serials, True

    def _ping(self, deadline: Deadline) -> None:
        with self._connected(deadline) as control:
            trouble = error_in(list(control.ask({'command': 'status'}, deadline)))
        if trouble is not None:
            raise BackendError(why=f"status: {trouble['error']}")

    def _try_key(self, deadline: Deadline) -> None:
        probe = a_probe()
        self._create_many([probe], deadline)
        try:
            # It may take a moment until the zone is there; it is answered with SERVFAIL then, having no contents.
            soa_check.ask(self.server, [probe.name], Deadline(min(KEY_SECONDS, deadline.left())),
                          lambda said: not soa_check.is_absent(said))
        except OSError as error:  # whether it answers at all is not the question here
            LOG.debug('%s: %s', self.server.label, error)
        finally:
            self._delete_many([probe], deadline)

    def _advice(self, result: model.CallResult) -> str:
        for words, advice in _ADVICE.items():
            if words in str(result.error):
                return advice
        return super()._advice(result)

    def _hold(self, control: KnotControl, names: Sequence[str], deadline: Deadline) -> Refused:
        """Have the server hold zones with the settings of now, and go for the contents of those that have none."""
        held, refused = self._read_zones(control, names, deadline)
        shared = [*self._differs(control, 'remote', {'address': self._primaries, 'key': self._key}, deadline),
                  *self._differs(control, 'acl', self._rule(), deadline)]
        template, = config_transaction.read(control, 'template', [self._template or 'default'], deadline)
        # A zone's own rules take the place of its template's, so it is given these as well.
        rules = [self._ours, *(rule for rule in (template or {}).get('acl', ()) if rule != self._ours)]
        wanted: Settings = {'template': [self._template] if self._template else [], 'master': [self._ours],
                            'acl': rules}
        pattern = ((template or {}).get('file') or [ZONE_FILE])[0]
        changes = {name: config_transaction.difference('zone', name, settings,
                                                       {**wanted, **_file(name, settings, pattern)})
                   for name, settings in held.items()}
        changes = {name: change for name, change in changes.items() if change}
        if shared or changes:
            refused |= config_transaction.commit(control, [*shared, *config_transaction.mark('remote', self._ours)],
                                                 changes,
                                                 deadline)
        known = [name for name, settings in held.items() if settings is not None and name not in refused]
        return refused | self._fetch_what_is_empty(control, known, deadline)

    def _drop(self, control: KnotControl, names: Sequence[str], deadline: Deadline) -> Refused:
        """Have the server hold zones no longer, and nothing of their contents that a later zone could begin with."""
        held, refused = self._read_zones(control, names, deadline)
        there = [name for name, settings in held.items() if settings is not None]
        if there:
            # A zone file can be removed only while its zone is there, a journal for good only when it is not.  knotd
            # calls it an error when the file's name would be too long for a file; no answer here stands in the way.
            control.ask_each([_purge(name, 'f') for name in there], deadline)
            known = config_transaction.read(control, 'remote', [self._ours], deadline)[0] is not None
            shared: Change = config_transaction.mark('remote', self._ours) if known else []
            changes = {name: config_transaction.removal('zone', name) for name in there}
            refused |= config_transaction.commit(control, shared, changes, deadline)
        gone = [name for name in held if name not in refused]
        return refused | _each_told(control, gone, [_purge(name, 'oj') for name in gone], deadline)

    def _read_zones(self, control: KnotControl, names: Sequence[str],
                    deadline: Deadline) -> tuple[dict[str, Settings | None], Refused]:
        """The settings of zones, None for one that is not there; those that are there and no secondaries are refused.

        Such a zone is an operator's own, whose contents must not be lost.
        """
        held = dict(zip(names, config_transaction.read(control, 'zone', names, deadline), strict=True))
        foreign = {name for name, settings in held.items() if settings is not None and not settings.get('master')}
        refused: Refused = {name: BackendError(why=f"{name} is there already, without a 'master' of its own: take it"
                                                   " away with knotc's conf-unset", reason=Reason.CONFLICT)
                            for name in foreign}
        return {name: settings for name, settings in held.items() if name not in foreign}, refused

    def _fetch_what_is_empty(self, control: KnotControl, names: Sequence[str], deadline: Deadline) -> Refused:
        """Have zones that are there already transfer now if they have no contents; by themselves they wait longer."""
        asked: list[Block] = [[{'command': 'zone-status', 'zone': name, 'filters': 's'}] for name in names]
        answers = zip(names, control.ask_each(asked, deadline), strict=True)
        empty = [name for name, answer in answers if all(_serial(unit.get('data')) is None for unit in answer)]
        return _each_told(control, empty, [[{'command': 'zone-refresh', 'zone': name}] for name in empty], deadline)

    def _each_named(self, domains: Sequence[model.Domain],
                    act: Callable[[KnotControl, Sequence[str], Deadline], Refused], deadline: Deadline) -> Outcomes:
        names: dict[str, str] = {}
        outcomes: dict[str, BackendError] = {}
        for domain in domains:
            try:
                names[domain.id] = config_transaction.absolute(domain.name)
            except (dns.exception.DNSException, ValueError) as error:
                outcomes[domain.id] = BackendRefused(why=f'{domain.name!r} is not a domain name ({error})')
        distinct = [*dict.fromkeys(names.values())]
        refused = self._patiently(lambda control, deadline: act(control, distinct, deadline), deadline)
        outcomes |= {id: refused[name] for id, name in names.items() if name in refused}
        return [outcomes.get(domain.id) for domain in domains]

    def _patiently(self, work: Callable[[KnotControl, Deadline], T], deadline: Deadline) -> T:
        """Do *work* on a connection of its own, again as long as somebody else has a transaction open.

        That somebody is let in meanwhile: knotd does not serve a second connection beside ours.
        """
        until = time.monotonic() + deadline.left() * PATIENCE
        while True:
            try:
                with self._connected(deadline) as control:
                    return work(control, deadline)
            except TransactionIsOpen:
                if time.monotonic() + PAUSE.initial > until:
                    raise
            time.sleep(PAUSE.delay(0, random.random()))

    @contextlib.contextmanager
    def _connected(self, deadline: Deadline) -> Iterator[KnotControl]:
        try:
            control = KnotControl(self._path, deadline)
        except PermissionError as error:
            raise BackendRefused(why=f'control_socket: {self._path}: permission denied',
                                 reason=Reason.NO_ACCESS) from error
        try:
            yield control
        finally:
            control.close()

    def _differs(self, control: KnotControl, section: str, wanted: Settings, deadline: Deadline) -> Change:
        """What gives our own *section* the items *wanted*."""
        held, = config_transaction.read(control, section, [self._ours], deadline)
        return config_transaction.difference(section, self._ours, held, wanted)

    def _rule(self) -> Settings:
        """Who may send NOTIFY, and transfer zones, so that their contents can be compared.

        knotd takes any question that is signed with a key only where a rule has the key.
        """
        hosts = [] if self._key else [primary.partition('@')[0] for primary in self._primaries]
        return {'address': [*dict.fromkeys(hosts)], 'key': self._key, 'action': ['notify', 'transfer']}


def _file(name: str, held: Settings | None, pattern: str) -> Settings:
    """The item ``file`` of a zone whose name Knot would alter to make a file of it, and so give several zones one file.

    A hash has 64 digits, more than a label can have, so no zone is called like another one's file.

    :param pattern: what the template has as ``file``
    """
    if len(name) <= LONGEST_IN_FILE and _PLAIN_NAME.fullmatch(name) or (held or {}).get('file'):
        return {}
    plain = hashlib.sha256(name.encode()).hexdigest()
    return {'file': [(pattern if '%s' in pattern else ZONE_FILE).replace('%s', plain)]}


def _purge(name: str, what: str) -> Block:
    return [{'command': 'zone-purge', 'flags': 'F', 'zone': name, 'filters': what}]


def _each_told(control: KnotControl, names: Sequence[str], blocks: Sequence[Block], deadline: Deadline) -> Refused:
    """Give a command for each of *names*; by name, what went wrong with it."""
    answers = zip(names, map(error_in, control.ask_each(blocks, deadline)), strict=True)
    return {name: BackendError(why=f"{trouble.get('command')}: {trouble['error']}")
            for name, trouble in answers if trouble is not None}


def _serial(text: str | None) -> int | None:
    """A serial in an answer to ``zone-status``; a zone without contents has another word there."""
    return int(text) if text and text.isdecimal() else None


def _named(text: str, field: str) -> str:
    try:
        return config_transaction.absolute(text)
    except (dns.exception.DNSException, ValueError) as error:
        raise InvalidField(field=field, why=f'{text!r} is not a domain name ({error})') from error


def _address(endpoint: model.Endpoint) -> str:
    """*endpoint* as Knot writes it."""
    try:
        address = ipaddress.ip_address(endpoint.host)
    except ValueError as error:
        raise InvalidField(field='primaries', why=f"'{endpoint.host}' is not an IP address") from error
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return f'{socket.inet_ntop(family, address.packed)}@{endpoint.port}'
