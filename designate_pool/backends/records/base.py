"""A server that cannot transfer: it is fed by records, through a provider of the planner.

A subclass writes ``_new_provider``.  The pool manager reads what the zone should hold and calls :meth:`feed`; the plan,
its safety and its application happen within that call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import ClassVar

import dns.rdatatype

from designate_pool import model
from designate_pool.backends.base import Backend
from designate_pool.backends.capabilities import Capabilities
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendRefused, InvalidField
from designate_pool.planner.plan import policy
from designate_pool.planner.providers.base import ServerProvider
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import rrset

OWNERSHIPS = ('zone', 'database', 'txt')


class RecordBackend(Backend):
    """One server that is fed by records.

    A create or update feeds it, and is verified by reading back: so a success means that the contents are served.

    :ivar provider: what plans for the server and applies to it
    :ivar policy: what may be done there
    :ivar managed_types: of records that are kept in step; empty for all
    """

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        model.Option('call_timeout', 'Seconds that one request may take, and after which no further step is begun: '
                                     'reading the zone, applying the plan, reading back.', 'float', default=12.0,
                     minimum=0.01),
        model.Option('primaries', 'Of no use: nothing is transferred to the server.', 'endpoints', default=()),
        model.Option('managed_types', 'The types of records that are kept in step there, with commas between them; '
                                      'those of others are left alone. Not set: all that the server can hold.'),
        model.Option('policy', 'What may be done to records there: sync, upsert-only, create-only, or the verbs '
                               'create, update and delete with + between them. Not set: sync; it has to be set '
                               "unless ownership is 'zone'."),
        model.Option('update_pcent_threshold', 'The fraction of the RRsets there that one plan may update before an '
                                               'operator has to approve it.', 'float', 0.3, minimum=0, maximum=1),
        model.Option('delete_pcent_threshold', 'The same for RRsets that it would delete.', 'float', 0.3, minimum=0,
                     maximum=1),
        model.Option('min_existing_records', 'With fewer RRsets there, the fractions are not looked at.', 'int', 10,
                     minimum=0),
        model.Option('ownership', "Which RRsets there may be changed: 'zone', all; 'database', those that were put "
                                  "there from here; 'txt', those that a TXT record beside them says are ours.",
                     default='zone'),
        model.Option('owner_id', 'With ownership = txt: the name that those TXT records know us by.',
                     default='designate-pool'),
        model.Option('txt_prefix', 'With ownership = txt: what goes before the first label of their names.'),
        model.Option('lenient_supports', 'Whether records that the server cannot hold are left out, with a line in '
                                         'the log; without it the zone is in ERROR there.', 'bool', False),
        model.Option('audit_interval', 'Seconds after which a zone that is at rest is read and compared again; 0 '
                                       'never.', 'float', 3600.0, minimum=0),
    )
    capabilities = Capabilities(fed_by_records=True, serves_on_create=True)

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        ownership = self.options['ownership']
        if ownership not in OWNERSHIPS:
            raise InvalidField(field='ownership', why=f"'{ownership}' is none of {', '.join(OWNERSHIPS)}")
        if self.options['policy'] is None and ownership != 'zone':
            raise InvalidField(field='policy', why='it has to be given where zones are shared with others: sync is all')
        self.managed_types = _types(self.options['managed_types'])
        self.policy = policy.parse(self.options['policy'] or 'sync')
        self.provider = self._new_provider()
        self.provider.id = server.label  # in plans, people read it
        self.provider.timeout = server.call_timeout
        self.provider.update_pcent_threshold = self.options['update_pcent_threshold']
        self.provider.delete_pcent_threshold = self.options['delete_pcent_threshold']
        self.provider.min_existing_records = self.options['min_existing_records']
        self.provider.strict_supports = not self.options['lenient_supports']

    def feed(self, domain: model.Domain, work: Callable[[ServerProvider], None]) -> model.CallResult:
        """Have *work* bring *domain* up to date through the provider; what it raises is the result."""
        return self._call(f'feed {domain.name}', lambda deadline: work(self.provider))

    def close(self) -> None:
        self.provider.close()

    def _new_provider(self) -> ServerProvider:
        raise NotImplementedError

    def _create(self, domain: model.Domain, deadline: Deadline) -> None:
        """For checks alone: a zone with nothing but a SOA."""
        zone = Zone(domain.name)
        zone.add_record(rrset(domain.name, 'SOA', domain.ttl, [f'{domain.name} hostmaster.invalid. '
                                                               f'{domain.serial} 3600 600 86400 300']))
        self.provider.create_zone(zone)

    def _delete(self, domain: model.Domain, deadline: Deadline) -> None:
        """For checks alone: the whole zone.  What is deleted for the pool is deleted by a plan, as it is fed."""
        if 'delete' not in self.policy.verbs:
            raise BackendRefused(why=f'the policy {self.policy.name} of {self.server.label} does not let '
                                     f'{domain.name} be deleted there', reason=model.Reason.POLICY)
        self.provider.delete_zone(domain.name)

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[Mapping[str, int | None], bool]:
        return self.provider.zones(names)

    def _ping(self, deadline: Deadline) -> None:
        self.provider.ping()


def _types(text: str | None) -> tuple[str, ...]:
    found = tuple(each.strip().upper() for each in (text or '').split(',') if each.strip())
    for each in found:
        try:
            dns.rdatatype.from_text(each)
        except (dns.rdatatype.UnknownRdatatype, ValueError):
            raise InvalidField(field='managed_types', why=f"'{each}' is no type of records") from None
    return found
