"""Drivers of servers that cannot transfer: the records of zones are written through a provider of the planner.

A subclass of :class:`RecordBackend` implements ``_new_provider``.  The pool manager reads the contents that a zone
should have, and makes, checks and applies the plan in the context of :meth:`RecordBackend.feed`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import ClassVar

import dns.rdatatype

from designate_pool import model
from designate_pool.backends import pdns
from designate_pool.backends.base import Backend, Call, Capabilities
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendRefused, InvalidField
from designate_pool.model import Reason
from designate_pool.planner.octodns.adapter import adapt_server
from designate_pool.planner.plan import policy
from designate_pool.planner.providers.base import ServerProvider
from designate_pool.planner.targets.pdns import PdnsProvider
from designate_pool.planner.targets.rfc2136 import Rfc2136Provider
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import rrset

OWNERSHIPS = ('zone', 'database', 'txt')


class RecordBackend(Backend):
    """One server that is fed by records, which are written and read back: after a success the contents are served.

    :ivar provider: makes plans for the server and applies them
    :ivar policy: the changes that are allowed on the server
    :ivar managed_types: the types of records that are kept in step; empty for all
    """

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        model.Option('call_timeout', 'Seconds that one request may take, and after which no further step is started: '
                                     'reading the zone, applying the plan, reading back.', 'float', default=12.0,
                     minimum=0.01),
        model.Option('primaries', 'Not used: the server does not transfer.', 'endpoints', default=()),
        model.Option('managed_types', 'The types of records that are kept in step, separated by commas; others are not '
                                      'changed. Not set: all types that the server can hold.'),
        model.Option('policy', 'The changes that are allowed: sync, upsert-only, create-only, or the verbs create, '
                               'update and delete joined with +. Not set: sync; it must be set unless ownership is '
                               "'zone'."),
        model.Option('update_pcent_threshold', 'The fraction of the existing RRsets that one plan may update without '
                                               'the approval of an operator.', 'float', 0.3, minimum=0, maximum=1),
        model.Option('delete_pcent_threshold', 'The same for deletes.', 'float', 0.3, minimum=0,
                     maximum=1),
        model.Option('min_existing_records', 'With fewer existing RRsets the fractions are not checked.', 'int', 10,
                     minimum=0),
        model.Option('ownership', "Which RRsets may be changed: 'zone', all; 'database', those that the pool has "
                                  "created; 'txt', those that a TXT record beside them marks as the pool's.",
                     default='zone'),
        model.Option('owner_id', 'With ownership = txt: the name of this pool in those TXT records.',
                     default='designate-pool'),
        model.Option('txt_prefix', 'With ownership = txt: the prefix of the first label of their names.'),
        model.Option('lenient_supports', 'Whether records that the server cannot hold are left out, and logged; '
                                         'otherwise the zone is in ERROR on this server.', 'bool', False),
        model.Option('audit_interval', 'Seconds after which an unchanged zone is read and compared again; 0 for '
                                       'never.', 'float', 3600.0, minimum=0),
    )
    capabilities = Capabilities(fed_by_records=True, serves_on_create=True)

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        ownership = self.options['ownership']
        if ownership not in OWNERSHIPS:
            raise InvalidField(field='ownership', why=f"'{ownership}' is not one of {', '.join(OWNERSHIPS)}")
        if self.options['policy'] is None and ownership != 'zone':
            raise InvalidField(field='policy', why='it must be given if zones are shared; sync allows all changes')
        self.managed_types = _types(self.options['managed_types'])
        self.policy = policy.parse(self.options['policy'] or 'sync')
        self.provider = self._new_provider()
        self.provider.id = server.label  # plans show it to people
        self.provider.timeout = server.call_timeout
        self.provider.update_pcent_threshold = self.options['update_pcent_threshold']
        self.provider.delete_pcent_threshold = self.options['delete_pcent_threshold']
        self.provider.min_existing_records = self.options['min_existing_records']
        self.provider.strict_supports = not self.options['lenient_supports']

    def feed(self, domain: model.Domain) -> contextlib.AbstractContextManager[Call]:
        """The context in which *domain* is brought up to date through the provider; an exception becomes the result."""
        return self._calling(f'feed {domain.name}')

    def close(self) -> None:
        """Close the connections that are kept between calls."""
        self.provider.close()

    def _new_provider(self) -> ServerProvider:
        raise NotImplementedError

    def _create(self, domain: model.Domain, deadline: Deadline) -> None:
        """Create a zone that has only a SOA; called by :meth:`check` only."""
        zone = Zone(domain.name)
        zone.add_record(rrset(domain.name, 'SOA', domain.ttl, [f'{domain.name} hostmaster.invalid. '
                                                               f'{domain.serial} 3600 600 86400 300']))
        self.provider.create_zone(zone)

    def _delete(self, domain: model.Domain, deadline: Deadline) -> None:
        """Delete the whole zone; called by :meth:`check` only, since the pool's zones are deleted by a plan."""
        if 'delete' not in self.policy.verbs:
            raise BackendRefused(why=f'the policy {self.policy.name} of {self.server.label} does not allow '
                                     f'{domain.name} to be deleted', reason=model.Reason.POLICY)
        self.provider.delete_zone(domain.name)

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[Mapping[str, int | None], bool]:
        return self.provider.zones(names)

    def _ping(self, deadline: Deadline) -> None:
        self.provider.ping()


class Octodns(RecordBackend):
    """A server behind an octoDNS provider.  Its zones have serials of their own, which octoDNS does not show."""

    capabilities = dataclasses.replace(RecordBackend.capabilities, keeps_serial=False)

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *RecordBackend.OPTIONS,
        model.Option('class', "The provider's class, for example octodns_powerdns.PowerDnsProvider.", required=True),
        model.Option('settings', "The provider's settings in octoDNS's configuration, as a YAML mapping on one line; "
                                 'env/NAME stands for a variable of the environment.', default='{}', secret=True),
    )

    def _check_calls(self) -> list[tuple[str, Callable[[], model.CallResult]]]:
        # octoDNS cannot delete a zone, so none is created.
        return [('the provider does not answer', self.ping)]

    def _new_provider(self) -> ServerProvider:
        return adapt_server(self.server.label, self.options['class'], self.options['settings'] or '', os.environ)


class PdnsNative(RecordBackend):
    """A PowerDNS Authoritative Server that gets primary (or native) zones through its HTTP API, and never transfers."""

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *pdns.API_OPTIONS,
        model.Option('kind', 'The kind of the zones that are created: Native, or Primary if they have secondaries of'
                     ' their own.', default='Native'),
        *RecordBackend.OPTIONS)
    ADVICE = pdns.API_ADVICE
    capabilities = dataclasses.replace(RecordBackend.capabilities, limits=(pdns.ZONE_NAMES,))

    provider: PdnsProvider

    def _new_provider(self) -> PdnsProvider:
        return PdnsProvider(self.server.label, self.options['api_key'], pdns.api_url(self.server),
                            server_id=self.options['server_id'], ca_file=self.options['ca_file'],
                            kind=self.options['kind'])

    def _check_settings(self, deadline: Deadline, names: Collection[str]) -> Iterator[model.Finding]:
        return pdns.if_readable(lambda: pdns.misfits_of_primary(self.provider.settings(), self.options['kind']))


class Rfc2136(RecordBackend):
    """A primary server of any make that accepts DNS UPDATE (RFC 2136), signed with its TSIG key, as its transfers are.

    Its zones are created and removed by hand.
    """

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        *RecordBackend.OPTIONS,
        model.Option('update_port', "Port for updates; the server's port when not set.", 'port'),
    )

    ADVICE = {
        Reason.BAD_TIME: 'set the clocks of {server} and of this host',
        **dict.fromkeys((Reason.BAD_KEY, Reason.NOT_SIGNED),
                        'give {server} the key of its section, by the same name, algorithm and secret'),
    }

    def _check_calls(self) -> list[tuple[str, Callable[[], model.CallResult]]]:
        # Whether the server accepts updates can only be seen from a zone of the pool.
        return [('the server does not accept a query', self.ping)]

    def _new_provider(self) -> Rfc2136Provider:
        server = self.server
        key = server.tsig_key
        signed = {} if key is None else {'key_name': key.name, 'key_secret': key.secret, 'key_algorithm': key.algorithm}
        return Rfc2136Provider(server.id, server.host, server.port, timeout=server.call_timeout,
                               update_port=self.options['update_port'], **signed)


def _types(text: str | None) -> tuple[str, ...]:
    types = tuple(word.strip().upper() for word in (text or '').split(',') if word.strip())
    for rtype in types:
        try:
            dns.rdatatype.from_text(rtype)
        except (dns.rdatatype.UnknownRdatatype, ValueError):
            raise InvalidField(field='managed_types', why=f"'{rtype}' is not a type of records") from None
    return types
