"""Knot DNS: secondary zones in its configuration database are changed in transactions over its control socket.

knotd must run with a configuration database (``knotd -C``).  All zones of a server share one section ``remote``, which
has the primaries and the key of the server's section, and one section ``acl``, with which knotd accepts NOTIFY from
them and queries signed with the key, and lets them transfer the zones.  Changing these two changes all zones, and costs
knotd nothing.  A commit costs it time for every zone that it holds; so up to a thousand zones are changed at once, and
under load more are collected before the next commit.

A knotd has one configuration transaction at a time, which belongs to no connection: every command on any connection
acts in it.  It outlives the connection that began it, and as long as it is open nobody else can begin one.  Hence:

- nothing is sent for a transaction before its begin is confirmed;
- a transaction that does not end in a commit is aborted;
- each transaction changes the comment of a section of ours.  By that, one that a killed pool manager has left open is
  recognized and aborted;
- one that stays empty for a while is aborted too: it is from a pool manager whose connection ended after the begin.
  knotd closes a connection on which nothing was sent for five seconds, and an abort that comes later is lost.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import logging
import os
import random
import re
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import ClassVar, TypeVar

from designate_pool import model
from designate_pool.backends.base import (ADOPTS_ZONES, Backend, Capabilities, Outcomes, caught, ip_address, is_absent,
                                          probe_domain, query_soa)
from designate_pool.backends.knot.control_protocol import Block, KnotControl, Unit, error_in
from designate_pool.backoff import Backoff
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, InvalidField
from designate_pool.model import Reason, some
from designate_pool.protocol.names_and_rdata import name_of_server
from designate_pool.protocol.rules import ServerLimit

LOG = logging.getLogger(__name__)
T = TypeVar('T')

#: Octets that the path of a unix socket may have.
LONGEST_PATH = 107
#: The fraction of a call's time for which it waits for the end of somebody else's transaction.
PATIENCE = 0.8
#: The pause between two attempts to begin a transaction.
PAUSE = Backoff(0.25, factor=1.0, jitter=(0.2, 1.0))
#: Seconds that somebody else's transaction may be open without a change, after which it is taken for abandoned.
ABANDONED = 10.0
#: Seconds in which knotd must answer for a zone that was just added.
KEY_SECONDS = 2.0
#: Knot's default for the name of a zone's file.
ZONE_FILE = '%s.zone'
#: The items of a zone that the driver sets, or leaves as they are.
KEPT = frozenset({'domain', 'template', 'master', 'acl', 'file'})
#: Octets of a zone's name for which a file's name has room, with a prefix and a suffix.
LONGEST_IN_FILE = 200
_PLAIN_NAME = re.compile(r'[a-z0-9_-]+(\.[a-z0-9_-]+)*\.')
#: The prefix of the ids of our own sections.
OURS = 'designate-pool-'
#: How often a commit is tried again without the zones that were refused; knotd names only one of them at a time.
MOST_ATTEMPTS = 20
ABSENT = 'invalid identifier'
_BAD_REFERENCE = 'not exists'

#: The items of a section, each with its values.
Settings = Mapping[str, Sequence[str]]
#: Several blocks, since one has units of one command only; a block that is refused has changed nothing.
Change = Sequence[Block]
#: Why zones were left out, by name.
Refused = dict[str, BackendError]


class TransactionIsOpen(BackendError):
    """Another configuration transaction is open on the server, which changes {changes}; "knotc conf-abort" ends it."""

    reason = Reason.BUSY
    is_empty = False


class Knot(Backend):
    """A Knot DNS server."""

    # A knotd has one transaction at a time.
    capabilities = Capabilities(fetches_on_create=True, tries_key=True, batch_size=1000, gathers_below=100,
                                most_in_flight=1, limits=(
                                    ServerLimit('NSEC3PARAM', 1, 'Knot takes {limit} NSEC3PARAM record, not {size}'),))

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        model.Option('control_socket', "The unix socket of knotd's control interface.", 'path', '/run/knot/knot.sock',
                     private=True),
        model.Option('template', "The template in Knot's configuration with the other settings of the zones; the"
                     ' template default when not set.'),
        ADOPTS_ZONES,
    )
    ADVICE = {
        Reason.NO_ACCESS: 'add the user that the pool manager runs as to the group of knotd, which may use its socket',
        Reason.NOT_CONFIGURED: 'add the template to the configuration of Knot, or correct the option template',
        Reason.BAD_KEY: "add the key to the section key of Knot's configuration, with the name, algorithm and secret of"
                        ' tsig_key',
        Reason.BAD_TIME: 'set the clocks of both hosts by NTP',
        Reason.CONFLICT: "find out why the zone is there, and remove it with knotc's conf-unset if it is not needed",
        Reason.BUSY: 'find out who is changing the configuration of Knot; "knotc conf-diff" shows the changes',
    }

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        self._path = str(self.options['control_socket'])
        self._template = self.options['template'] or ''
        self._empty_since: float | None = None
        self._ours = f'{OURS}{server.id}'
        self._primaries = [_address(endpoint) for endpoint in server.primaries]
        self._key = [] if self._key_name is None else [self._key_name.canonicalize().to_text()]
        if len(os.fsencode(self._path)) > LONGEST_PATH:
            raise InvalidField(field='control_socket', why=f'its path is longer than {LONGEST_PATH} octets')

    def _check_settings(self, deadline: Deadline, names: Collection[str]) -> Iterator[model.Finding]:
        """Check that Knot does not sign the zones, and that it accepts queries signed with the TSIG key.

        It refuses a query for a zone that it does not have before it looks at the signature, so a zone is added for it.
        """
        name = self._template or 'default'
        with self._connected(deadline) as control:
            template, = read_sections(control, 'template', [name], deadline)
        if (template or {}).get('dnssec-signing') == ['on']:
            yield model.Finding(f'the template {name} has zones signed, so that their serials are not ours',
                                "remove 'dnssec-signing' from the template in Knot's configuration")
        if (template or {}).get('dnssec-validation') == ['on']:
            yield model.Finding(
                f'the template {name} has zones validated: Knot refuses a zone while a key that signs all (keys = csk '
                'of its policy) is rolled', "remove 'dnssec-validation' from the template, or have keys = split", False)
        if not self._key:
            return
        tried = self._call('query with the key', self._query_signed)
        if not tried.ok:
            yield model.Finding(f'{self._key[0]}: {tried.error}', self._advice(tried))

    def _create_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        self._require_primaries()
        return self._batch(domains, self._add, deadline)

    def _delete_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        return self._batch(domains, self._remove, deadline)

    def _refetch_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        return self._batch(domains, lambda control, names, deadline: _command_each(
            control, names, [[{'command': 'zone-retransfer', 'zone': name}] for name in names], deadline), deadline)

    def _zones(self, deadline: Deadline) -> Iterator[tuple[str, int | None, bool]]:
        with self._connected(deadline) as control:
            is_primary = False
            for unit in control.ask({'command': 'zone-status', 'filters': 'rs'}, deadline):
                if 'error' in unit:
                    raise BackendError(why=f"zone-status: {unit['error']}")
                if unit.get('type') == 'role':  # is the first unit of each zone
                    is_primary = unit.get('data') != 'slave'
                elif unit.get('type') == 'serial':
                    yield name_of_server(unit.get('zone', '')), _serial(unit.get('data')), is_primary

    def _ping(self, deadline: Deadline) -> None:
        with self._connected(deadline) as control:
            trouble = error_in(list(control.ask({'command': 'status'}, deadline)))
        if trouble is not None:
            raise BackendError(why=f"status: {trouble['error']}")

    def _query_signed(self, deadline: Deadline) -> None:
        probe = probe_domain()
        self._create_many([probe], deadline)
        try:
            # The zone exists after a moment; having no contents, it is then answered with SERVFAIL.
            query_soa(self.server, [probe.name], Deadline(min(KEY_SECONDS, deadline.left())),
                      lambda said: not is_absent(said))
        except OSError as error:  # another check finds out whether it answers at all
            LOG.debug('%s: %s', self.server.label, error)
        finally:
            self._delete_many([probe], deadline)

    def _add(self, control: KnotControl, names: Sequence[str], deadline: Deadline) -> Refused:
        """Add zones, give existing ones the current settings, and start a transfer of those without contents."""
        zones, refused = self._read_zones(control, names, deadline, bool(self.options['adopts_zones']))
        shared = [*self._change_of(control, 'remote', {'address': self._primaries, 'key': self._key}, deadline),
                  *self._change_of(control, 'acl', self._acl(), deadline)]
        template, = read_sections(control, 'template', [self._template or 'default'], deadline)
        # A zone's own acl replaces that of its template, so it gets both.
        rules = [self._ours, *(rule for rule in (template or {}).get('acl', ()) if rule != self._ours)]
        ours: Settings = {'template': [self._template] if self._template else [], 'master': [self._ours], 'acl': rules}
        pattern = ((template or {}).get('file') or [ZONE_FILE])[0]
        changes = {name: change for name, settings in zones.items() if (change := difference(
            'zone', name, settings, {**ours, **_file(name, settings, pattern), **_unset(settings)}))}
        if shared or changes:
            marked = [*shared, *mark('remote', self._ours)]
            refused |= self._commit(control, marked, changes, deadline)
        existing = [name for name, settings in zones.items() if settings is not None and name not in refused]
        return refused | self._refresh_empty(control, existing, deadline)

    def _remove(self, control: KnotControl, names: Sequence[str], deadline: Deadline) -> Refused:
        """Remove zones with their files and journals, from which a later zone of the same name could start."""
        zones, refused = self._read_zones(control, names, deadline)
        existing = [name for name, settings in zones.items() if settings is not None]
        if existing:
            # A zone file can be removed only while its zone exists, a journal only when it does not.  Errors are
            # ignored: one is that the name of the file would be too long.
            control.ask_each([_purge(name, 'f') for name in existing], deadline)
            has_remote = read_sections(control, 'remote', [self._ours], deadline)[0] is not None
            shared: Change = mark('remote', self._ours) if has_remote else []
            changes = {name: removal('zone', name) for name in existing}
            refused |= self._commit(control, shared, changes, deadline)
        gone = [name for name in zones if name not in refused]
        return refused | _command_each(control, gone, [_purge(name, 'oj') for name in gone], deadline)

    def _commit(self, control: KnotControl, shared: Change, zones: Mapping[str, Change], deadline: Deadline) -> Refused:
        refused = commit(control, shared, zones, deadline)
        self._empty_since = None
        return refused

    def _read_zones(self, control: KnotControl, names: Sequence[str], deadline: Deadline,
                    adopting: bool = False) -> tuple[dict[str, Settings | None], Refused]:
        """The settings of zones, None for one that does not exist; existing zones without ``master`` are refused.

        Such a zone is an operator's own, whose contents must not be lost unless the section says so.
        """
        zones = dict(zip(names, read_sections(control, 'zone', names, deadline), strict=True))
        foreign = set() if adopting else \
            {name for name, settings in zones.items() if settings is not None and not settings.get('master')}
        refused: Refused = {name: BackendError(why=f"{name} already exists there, without a 'master': remove it with"
                                                   " knotc's conf-unset if it is not needed, or have it taken over"
                                                   ' by adopts_zones', reason=Reason.CONFLICT)
                            for name in foreign}
        return {name: settings for name, settings in zones.items() if name not in foreign}, refused

    def _refresh_empty(self, control: KnotControl, names: Sequence[str], deadline: Deadline) -> Refused:
        """Start a transfer of those existing zones that have no contents; Knot itself would wait longer."""
        asked: list[Block] = [[{'command': 'zone-status', 'zone': name, 'filters': 's'}] for name in names]
        answers = zip(names, control.ask_each(asked, deadline), strict=True)
        empty = [name for name, answer in answers if all(_serial(unit.get('data')) is None for unit in answer)]
        return _command_each(control, empty, [[{'command': 'zone-refresh', 'zone': name}] for name in empty], deadline)

    def _batch(self, domains: Sequence[model.Domain],
               act: Callable[[KnotControl, Sequence[str], Deadline], Refused], deadline: Deadline) -> Outcomes:
        """Call *act* with the names of *domains*; the outcomes in the order of *domains*."""
        names = [caught(name_of_server, domain.name) for domain in domains]
        distinct = [*dict.fromkeys(name for name in names if isinstance(name, str))]
        refused = self._when_free(lambda control, deadline: act(control, distinct, deadline), deadline)
        return [refused.get(name) if isinstance(name, str) else name for name in names]

    def _when_free(self, work: Callable[[KnotControl, Deadline], T], deadline: Deadline) -> T:
        """Do *work* on a new connection; try again while somebody else has a transaction open, unless it is abandoned.

        The connection is closed between two attempts: knotd does not serve others as long as it is open.
        """
        until = time.monotonic() + deadline.left() * PATIENCE
        while True:
            try:
                with self._connected(deadline) as control:
                    if self._empty_since is not None and time.monotonic() - self._empty_since > ABANDONED:
                        abort_empty(control, deadline)
                        self._empty_since = None
                    return work(control, deadline)
            except TransactionIsOpen as error:
                self._empty_since = (self._empty_since or time.monotonic()) if error.is_empty else None
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

    def _change_of(self, control: KnotControl, section: str, wanted: Settings, deadline: Deadline) -> Change:
        present, = read_sections(control, section, [self._ours], deadline)
        return difference(section, self._ours, present, wanted)

    def _acl(self) -> Settings:
        """Who may send NOTIFY, transfer zones to compare them, or send a query that is signed with the key."""
        hosts = [] if self._key else [primary.partition('@')[0] for primary in self._primaries]
        return {'address': [*dict.fromkeys(hosts)], 'key': self._key, 'action': ['notify', 'transfer']}


def _file(name: str, held: Settings | None, pattern: str) -> Settings:
    """The item ``file`` of a zone whose name Knot would change or truncate, so that two zones could share a file.

    It is the *pattern* of the template with a hash of the name: 64 digits, more than a label of a zone can have.
    """
    if len(name) <= LONGEST_IN_FILE and _PLAIN_NAME.fullmatch(name) or (held or {}).get('file'):
        return {}
    plain = hashlib.sha256(name.encode()).hexdigest()
    return {'file': [(pattern if '%s' in pattern else ZONE_FILE).replace('%s', plain)]}


def _unset(held: Settings | None) -> Settings:
    """The items of a primary zone that it loses when it becomes ours, whose other settings are the template's.

    Otherwise ``zonefile-load`` and the like could let knotd start again with the contents of then.
    """
    if not held or held.get('master'):
        return {}
    return {item: [] for item in held if item not in KEPT}


def _purge(name: str, what: str) -> Block:
    return [{'command': 'zone-purge', 'flags': 'F', 'zone': name, 'filters': what}]


def _command_each(control: KnotControl, names: Sequence[str], blocks: Sequence[Block], deadline: Deadline) -> Refused:
    """Send a command for each of *names*; the errors, by name."""
    answers = zip(names, map(error_in, control.ask_each(blocks, deadline)), strict=True)
    return {name: BackendError(why=f"{trouble.get('command')}: {trouble['error']}")
            for name, trouble in answers if trouble is not None}


def _serial(text: str | None) -> int | None:
    """A serial in an answer to ``zone-status``; None for the word that stands there for a zone without contents."""
    return int(text) if text and text.isdecimal() else None


def _address(endpoint: model.Endpoint) -> str:
    address = ip_address(endpoint)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return f'{socket.inet_ntop(family, address.packed)}@{endpoint.port}'


def read_sections(control: KnotControl, section: str, ids: Sequence[str], deadline: Deadline) -> list[Settings | None]:
    """The current settings of sections, in the order of their *ids*; None for one that does not exist."""
    answers = control.ask_each([[{'command': 'conf-read', 'section': section, 'id': id}] for id in ids], deadline)
    return [_settings(answer) for answer in answers]


def difference(section: str, id: str, held: Settings | None, wanted: Settings) -> Change:
    """The change that gives a section the items *wanted*, where those without values are removed and others stay.

    It is empty when the section, whose present items are *held* (None for no section), has them.
    """
    unset: list[Unit] = []
    units: list[Unit] = [] if held is not None else [_command('conf-set', section, id)]
    for item, values in wanted.items():
        had = (held or {}).get(item, ())
        if list(had) != list(values):
            unset += [_command('conf-unset', section, id, item)] if had else []
            units += [_command('conf-set', section, id, item, value) for value in values]
    return [block for block in (unset, units) if block]


def removal(section: str, id: str) -> Change:
    """The change that removes a section."""
    return [[_command('conf-unset', section, id)]]


def mark(section: str, id: str) -> Change:
    """The change of a section of ours by which a transaction is recognized as ours."""
    now = datetime.datetime.now(datetime.UTC).isoformat()
    return [[_command('conf-set', section, id, 'comment', f'last changed by designate-pool at {now}')]]


def abort_empty(control: KnotControl, deadline: Deadline) -> None:
    """Abort the open transaction if it changes nothing."""
    if not any('error' not in unit for unit in list(control.ask({'command': 'conf-diff'}, deadline))):
        list(control.ask({'command': 'conf-abort'}, deadline))


def commit(control: KnotControl, shared: Change, zones: Mapping[str, Change], deadline: Deadline) -> Refused:
    """Change the configuration in one transaction, without the zones whose change the server refuses.

    :param shared: the changes that all zones need; they are sent first
    :param zones: the changes of zones, by name
    :returns: the errors of the zones that were refused, by name
    :raises BackendError: when nothing was changed, TransactionIsOpen when somebody else has a transaction open
    """
    refused: Refused = {}
    for _ in range(MOST_ATTEMPTS):
        due = {name: change for name, change in zones.items() if name not in refused}
        if refused and not due:
            return refused
        _open(control, deadline)
        try:
            newly_refused = _change(control, shared, due, deadline) or _commit(control, due, deadline)
        except BaseException:  # also after a timeout: the last command may still be carried out
            control.send_last({'command': 'conf-abort'})
            raise
        if not newly_refused:
            return refused
        list(control.ask({'command': 'conf-abort'}, deadline))
        refused |= newly_refused
    raise BackendError(why=f'the server refuses zone after zone, the last one with: {[*refused.values()][-1]}')


def _open(control: KnotControl, deadline: Deadline) -> None:
    if error_in(list(control.ask({'command': 'conf-begin'}, deadline))) is None:
        return
    changed = [unit for unit in control.ask({'command': 'conf-diff'}, deadline) if 'error' not in unit]
    if any(unit.get('item') == 'comment' and unit.get('id', '').startswith(OURS) for unit in changed):
        list(control.ask({'command': 'conf-abort'}, deadline))
        if error_in(list(control.ask({'command': 'conf-begin'}, deadline))) is None:
            return
    raise TransactionIsOpen(changes=_describe(changed), is_empty=not changed)


def _change(control: KnotControl, shared: Change, zones: Mapping[str, Change], deadline: Deadline) -> Refused:
    blocks = [('', block) for block in shared] + [(name, block) for name, change in zones.items() for block in change]
    refused: Refused = {}
    for (name, _), answer in zip(blocks, control.ask_each([block for _, block in blocks], deadline), strict=True):
        trouble = error_in(answer)
        if trouble is not None and not name:
            raise _error(trouble)
        if trouble is not None:
            refused.setdefault(name, _error(trouble))
    return refused


def _commit(control: KnotControl, zones: Mapping[str, Change], deadline: Deadline) -> Refused:
    try:
        trouble = error_in(list(control.ask({'command': 'conf-commit'}, deadline)))
    except TimeoutError as error:
        raise BackendError(why=f'conf-commit has not ended within {deadline.seconds:g} s; knotd waits for the zone'
                               ' refreshes that are in progress', reason=Reason.TIMEOUT) from error
    if trouble is None:
        return {}
    name = name_of_server(trouble['id']) if trouble.get('section') == 'zone' and 'id' in trouble else ''
    if name not in zones:
        raise _error(trouble)
    return {name: _error(trouble)}


def _command(command: str, section: str, id: str, item: str | None = None, data: str | None = None) -> Unit:
    unit = {'command': command, 'section': section, 'item': item, 'id': id, 'data': data}
    return {name: value for name, value in unit.items() if value is not None}


def _settings(answer: Sequence[Unit]) -> Settings | None:
    trouble = error_in(answer)
    if trouble is not None:
        if trouble['error'] == ABSENT:
            return None
        raise _error(trouble)
    items: dict[str, list[str]] = {}
    for unit in answer:
        items.setdefault(unit.get('item', ''), []).append(unit.get('data', ''))
    return items


def _error(trouble: Unit) -> BackendError:
    """The error for *trouble*; its data is left out, since it may be secret, unless it is a name that we have sent."""
    item, error = trouble.get('item', ''), trouble['error']
    if error == _BAD_REFERENCE and item in ('template', 'key'):
        return BackendRefused(why=f"the server's configuration has no {item} {trouble.get('data', '')}",
                              reason=Reason.BAD_KEY if item == 'key' else Reason.NOT_CONFIGURED)
    where = '.'.join(word for word in (trouble.get('section'), item) if word)
    return BackendError(why=f"{trouble.get('command', 'conf-commit')}: {where + ': ' if where else ''}{error}")


def _describe(changed: Sequence[Unit]) -> str:
    sections = dict.fromkeys(' '.join(filter(None, (unit.get('section'), _id(unit)))) for unit in changed)
    if not sections:
        return 'nothing yet'
    return some([*sections], 3)


def _id(unit: Unit) -> str | None:
    return unit.get('data') if unit.get('item') in ('id', 'domain', 'target') else unit.get('id')
