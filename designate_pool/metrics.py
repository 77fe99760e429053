"""The metrics for Prometheus that the programs expose.

No metric names a zone, a record or a project: their number is unlimited, and readers of metrics may not see them.  The
labels are servers (``driver:address:port``), pools, and fixed words.  Callers bind the labels of frequent metrics once.

Metrics are for the whole process; one that runs several services (``designate-pool-all``) has those of all of them.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Sequence

from prometheus_client import Counter, Gauge, Histogram, Info

from designate_pool import __version__

#: Buckets in seconds: for local work, for calls to a server, and for convergence of a pool.
SHORT = (.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10)
LONG = (.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)
WAITING = (.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 21600, 86400)

_SERVER = ('server',)
_POOL = ('pool',)
_POOL_SERVER = ('pool', 'server')

BUILD = Info('designate_pool_build', 'The version that runs, and the Python that runs it.')
BUILD.info({'version': __version__, 'python': platform.python_version()})
ALIVE_AT = Gauge('designate_pool_heartbeat_timestamp_seconds', 'When a service last sent a heartbeat.',
                 ('service', 'pool'))

# Central, by what it signs.
SIGNATURES = Counter('designate_pool_dnssec_signatures', 'Signatures that were made.', _POOL)
SIGNATURES_REFUSED = Counter('designate_pool_dnssec_refused', 'Changes of signed zones that were refused since their '
                             'signatures did not verify, or a token did not sign.', _POOL)
SIGNING_HELD = Gauge('designate_pool_dnssec_held', 'Zones whose signing is held until an operator resumes it, as after '
                     'the database was restored.', _POOL)
ZONES_VERIFIED = Counter('designate_pool_dnssec_verified', 'Signed zones that were verified whole, by result: '
                         'valid, wrong, unknown (too large, or no time).',
                         ('pool', 'result'))

# The pool manager, by what it does.
OPERATIONS = Counter('designate_pool_operations', "Driver calls; a call for many zones counts once for each zone.",
                     ('server', 'driver', 'action', 'outcome'))
FAILURES = Counter('designate_pool_failures', 'Driver calls that failed (create, update, delete), once for each zone, '
                   'and SOA polls that failed (poll), by reason.', ('server', 'action', 'reason'))
OPERATION_SECONDS = Histogram('designate_pool_operation_seconds', 'Duration of driver calls; a call for many zones '
                              'counts once.', ('server', 'driver', 'action'), buckets=LONG)
CONTENTS = Counter('designate_pool_contents_compared', "Zones whose contents on a server were compared with the "
                   "database, by result.", ('server', 'match'))
SIGNATURES_EXPIRE_AT = Gauge('designate_pool_signatures_expire_timestamp_seconds', 'When the first of the signatures '
                             'expires that a server serves of the signed zones, as last seen by this pool manager.',
                             _POOL_SERVER)
TICKED_AT = Gauge('designate_pool_last_tick_timestamp_seconds', 'When a loop of the pool manager last ran.', ('loop',))
LOOP_FAILURES = Counter('designate_pool_loop_failures', 'Runs of a loop of the pool manager that failed.', ('loop',))
CIRCUIT_OPEN = Gauge('designate_pool_circuit_open', '1 while the circuit breaker is open, since the server did not '
                     'answer: on its control channel (control) or over DNS (dns).', ('pool', 'server', 'channel'))
CLOCK_AHEAD = Gauge('designate_pool_clock_ahead_seconds', "How far a pool manager's clock is ahead of the database's; "
                    'negative where it is behind.')
QUEUE = Gauge('designate_pool_queue_length', 'Entries in a queue of the pool manager: casts, outcomes, reports, and '
              'driver calls.', ('queue',))

# The pool manager, by what it reads from the database.  Rows are counted up to storage.reporting.gauges.MOST.
ROWS_WAITING = Gauge('designate_pool_rows_waiting', 'Operations that are due on a server or will be retried.',
                     _POOL_SERVER)
ROWS_DUE = Gauge('designate_pool_rows_due', 'Operations that are due now and that no program is working on.',
                 _POOL_SERVER)
ROWS_FAILING = Gauge('designate_pool_rows_failing', 'Waiting operations that are in ERROR.', _POOL_SERVER)
ROWS_DIVERGED = Gauge('designate_pool_rows_diverged', 'Waiting operations whose server serves different contents under '
                      'the right serial.', _POOL_SERVER)
ROWS_IN_HAND = Gauge('designate_pool_rows_in_hand', 'Waiting operations that a pool manager or MiniDNS is working on.',
                     _POOL_SERVER)
DUE_AGE = Gauge('designate_pool_oldest_due_seconds', 'How long the oldest operation that no program is working on has '
                'been due.', _POOL_SERVER)
BEHIND = Gauge('designate_pool_domains_behind', 'Zones whose newest change a server lacks.', _POOL_SERVER)
LAG = Gauge('designate_pool_serial_lag_seconds', 'Age of the oldest change that this server lacks, in seconds.',
            _POOL_SERVER)
SERVER_STATE = Gauge('designate_pool_server_state', '1 for the state that a server is in, 0 for the others.',
                     ('pool', 'server', 'state'))
DOMAINS = Gauge('designate_pool_domains', 'Zones by status.', ('pool', 'status'))
PLANS_PARKED = Gauge('designate_pool_plans_parked', 'Plans that wait for an operator to approve or drop them.', _POOL)
RELEASES = Gauge('designate_pool_releases', 'Zones that are released in stages: running, or held since a server has '
                 'failed.', (*_POOL, 'state'))
MEASURED_AT = Gauge('designate_pool_measured_timestamp_seconds', 'When the gauges that come from the database were '
                    'last set.', _POOL)

# The rounds over all domains, by what they look at (kind).
AUDIT_SECONDS = Gauge('designate_pool_audit_seconds', 'Duration of the last complete audit round over all zones of a '
                      'pool.', ('pool', 'kind'))
AUDIT_ENDED_AT = Gauge('designate_pool_audit_timestamp_seconds', 'When the last audit round ended.', ('pool', 'kind'))
AUDIT_STARTED_AT = Gauge('designate_pool_audit_started_timestamp_seconds', 'When the present audit round started; in '
                         'the future while it waits to start.', ('pool', 'kind'))
AUDIT_INTERVAL = Gauge('designate_pool_audit_interval_seconds', 'The interval in which an audit round has to end; 0 '
                       'for never.', ('pool', 'kind'))
AUDIT_DOMAINS = Gauge('designate_pool_audit_domains', 'Zones that the last audit round covered.', ('pool', 'kind'))
AUDIT_COVERAGE = Gauge('designate_pool_audit_coverage', 'Share of questions of the last audit round (each zone on each '
                       'server that should have it) that were answered, 0 to 1.', ('pool', 'kind'))
AUDIT_UNANSWERED = Gauge('designate_pool_audit_unanswered', 'Questions of the last audit round that were not answered.',
                         ('pool', 'kind'))
AUDIT_FINDINGS = Gauge('designate_pool_audit_findings', 'Findings of the last audit round: zones recorded as right '
                       'that were not.', ('pool', 'kind'))

# MiniDNS.
POLLS = Counter('designate_pool_polls', 'SOA polls that ended, each with all its tries.', ('server', 'outcome'))
POLL_SECONDS = Histogram('designate_pool_poll_seconds', 'Duration of SOA polls, with all their tries.', _SERVER,
                         buckets=LONG)
POLLS_IN_FLIGHT = Gauge('designate_pool_polls_in_flight', 'SOA polls under way.')
AUDITED = Counter('designate_pool_audited', "Serials that the audit asked servers for, by how the question ended.",
                  ('server', 'outcome'))
NOTIFIES = Counter('designate_pool_notifies', 'NOTIFYs that ended, each with all its tries.', ('server', 'outcome'))
TRANSFERS = Counter('designate_pool_transfers', 'Requests of servers to MiniDNS, AXFR, IXFR or SOA, by outcome; '
                    'ixfr_whole is an IXFR answered with the whole zone.', ('server', 'kind', 'outcome'))
TRANSFER_SECONDS = Histogram('designate_pool_transfer_seconds', 'Duration of complete transfers.',
                             ('server', 'kind'), buckets=LONG)
TRANSFER_BYTES = Counter('designate_pool_transfer_bytes', 'Octets of the answer sections of complete transfers.',
                         ('server', 'kind'))
REFUSED = Counter('designate_pool_refused_queries', 'Queries that were refused, by reason.', ('reason',))

# Central.
TRANSITIONS = Counter('designate_pool_domain_transitions', 'Changes of zones into a status.', ('pool', 'status'))
CONVERGENCE_SECONDS = Histogram('designate_pool_convergence_seconds', 'Time from a change of a zone until enough '
                                'servers of its pool served it.', ('pool', 'action'), buckets=WAITING)
NOTIFICATIONS = Counter('designate_pool_notifications', 'Notifications by outcome: sent, failed, or dropped because '
                        'too many waited.', ('outcome',))

# Between the services, and the database.
RPC_CALLS = Counter('designate_pool_rpc_calls', 'Calls to another service that ended.',
                    ('service', 'method', 'outcome'))
RPC_SECONDS = Histogram('designate_pool_rpc_call_seconds', 'Duration of calls to another service.',
                        ('service', 'method'), buckets=LONG)
RPC_CASTS = Counter('designate_pool_rpc_casts', 'Messages to another service that expect no answer.',
                    ('service', 'method', 'outcome'))
TRANSACTIONS = Counter('designate_pool_database_transactions', 'Transactions by kind, read or write.',
                       ('kind', 'outcome'))
TRANSACTION_SECONDS = Histogram('designate_pool_database_transaction_seconds', 'Duration of transactions, including '
                                'waits for a connection and for locks, and retries.', ('kind',),
                                buckets=SHORT)
TRANSACTION_RETRIES = Counter('designate_pool_database_retries', 'Transactions that were retried after a transient '
                              'failure of the database.')

# The API.
REQUESTS = Counter('designate_pool_api_requests', "Answered requests, by operation of the OpenAPI document.",
                   ('operation', 'status'))
REQUEST_SECONDS = Histogram('designate_pool_api_request_seconds', 'Time from a complete request to its answer.',
                            ('operation',), buckets=LONG)

# The webhook for external-dns.
WEBHOOK_REQUESTS = Counter('designate_pool_webhook_requests', 'Requests of external-dns that were answered.',
                           ('request', 'status'))
WEBHOOK_SECONDS = Histogram('designate_pool_webhook_request_seconds', 'Duration of requests, including calls to the '
                            'API of the pool.', ('request',), buckets=LONG)
WEBHOOK_REFUSED = Gauge('designate_pool_webhook_endpoints_refused', 'Endpoints of the last POST /adjustendpoints '
                        'that were left out as invalid; the log says why.')
WEBHOOK_LEFT_OUT = Counter('designate_pool_webhook_endpoints_left_out', 'Endpoints of POST /records that were left '
                           'out, because they cannot be, or the pool refuses them; the log says why.')
WEBHOOK_CHANGES = Counter('designate_pool_webhook_changes', 'Changes of RRsets made for external-dns.')

_OF_SERVER = (ROWS_WAITING, ROWS_DUE, ROWS_FAILING, ROWS_DIVERGED, ROWS_IN_HAND, DUE_AGE, BEHIND, LAG)


def forget_server(pool: str, server: str, states: Sequence[str], channels: Sequence[str]) -> None:
    """Remove the gauges of a server that has been removed; its counters stay.

    Any of them may be missing: those of its circuits are where it was never worked on here.
    """
    labels: list[tuple[Gauge, tuple[str, ...]]] = [(gauge, (pool, server)) for gauge in _OF_SERVER]
    labels += [(SIGNATURES_EXPIRE_AT, (pool, server))]
    labels += [(SERVER_STATE, (pool, server, state)) for state in states]
    labels += [(CIRCUIT_OPEN, (pool, server, channel)) for channel in channels]
    for gauge, values in labels:
        with contextlib.suppress(KeyError):  # raised by prometheus_client before 0.22
            gauge.remove(*values)
