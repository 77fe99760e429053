"""What is counted and measured, for Prometheus: every metric that a program of ours exposes is declared here.

No metric names a zone, a record or a project: those have no bound, and are nobody's business who may read metrics.  The
labels are servers (as people read them, ``driver:address:port``), pools, and words of ours.  What is asked for often is
bound to its labels once, by whoever asks.

Metrics are for the whole process; one that runs several services (``designate-pool-all``) has those of all of them.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, Info

from designate_pool import __version__

#: Seconds: of what stays in this machine, of what goes to a server and back, and of what has to be agreed on.
SHORT = (.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10)
LONG = (.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)
WAITING = (.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 21600, 86400)

#: In the place of a server: one that is not configured, and who comes with a TSIG key that was given out.
UNKNOWN, VISITOR = 'unknown', 'visitor'

_SERVER = ('server',)
_POOL = ('pool',)
_POOL_SERVER = ('pool', 'server')

BUILD = Info('designate_pool_build', 'The version that runs, and the Python that runs it.')
BUILD.info({'version': __version__, 'python': platform.python_version()})

# The pool manager, by what it does.
OPERATIONS = Counter('designate_pool_operations', "Driver's calls, a call for many domains counting for each.",
                     ('server', 'driver', 'action', 'outcome'))
OPERATION_SECONDS = Histogram('designate_pool_operation_seconds', "How long a driver's call took, one for many domains "
                              'counting once.', ('server', 'driver', 'action'), buckets=LONG)
CONTENTS = Counter('designate_pool_contents_compared', "Zones whose contents on a server were compared with the "
                   "database's, and what came of it.", ('server', 'match'))
TICKED_AT = Gauge('designate_pool_last_tick_timestamp_seconds', 'When a loop of the pool manager last came round.',
                  ('loop',))
LOOP_FAILURES = Counter('designate_pool_loop_failures', 'Turns of a loop of the pool manager that failed.', ('loop',))
CIRCUIT_OPEN = Gauge('designate_pool_circuit_open', 'Whether a server is left in peace because it did not answer: its '
                     'control channel (control) or its DNS (dns).', ('pool', 'server', 'channel'))
CLOCK_AHEAD = Gauge('designate_pool_clock_ahead_seconds', "How far a pool manager's clock is ahead of the database's; "
                    'negative where it is behind.')
QUEUE = Gauge('designate_pool_queue_length', 'What waits in a queue of the pool manager: casts, outcomes, reports, and '
              'calls of drivers.', ('queue',))

# The pool manager, by what it reads from the database.  Counts of rows end at storage.measures.MOST.
ROWS_WAITING = Gauge('designate_pool_rows_waiting', 'Operations that are due on a server or tried again later.',
                     _POOL_SERVER)
ROWS_DUE = Gauge('designate_pool_rows_due', 'Operations whose time has come and that nobody has in hand.',
                 _POOL_SERVER)
ROWS_FAILING = Gauge('designate_pool_rows_failing', 'Waiting operations that are in ERROR.', _POOL_SERVER)
ROWS_DIVERGED = Gauge('designate_pool_rows_diverged', 'Waiting operations whose server serves other contents under the '
                      'right serial.', _POOL_SERVER)
ROWS_IN_HAND = Gauge('designate_pool_rows_in_hand', 'Waiting operations that a pool manager or MiniDNS is at work on.',
                     _POOL_SERVER)
DUE_AGE = Gauge('designate_pool_oldest_due_seconds', 'For how long the oldest operation has been due that nobody has '
                'in hand.', _POOL_SERVER)
BEHIND = Gauge('designate_pool_domains_behind', 'Domains whose newest change a server has yet to take.',
               _POOL_SERVER)
LAG = Gauge('designate_pool_serial_lag_seconds', 'For how long a server has been without the newest change of the '
            'domain that changed first of those it is behind on.', _POOL_SERVER)
SERVER_STATE = Gauge('designate_pool_server_state', '1 for the state that a server is in, 0 for the others.',
                     ('pool', 'server', 'state'))
DOMAINS = Gauge('designate_pool_domains', 'Domains by status.', ('pool', 'status'))
PLANS_PARKED = Gauge('designate_pool_plans_parked', 'Plans that wait for an operator to approve or drop them.', _POOL)
MEASURED_AT = Gauge('designate_pool_measured_timestamp_seconds', 'When the gauges that come from the database were '
                    'last set.', _POOL)

# The rounds over all domains, by what they look at (kind).
AUDIT_SECONDS = Gauge('designate_pool_audit_seconds', 'How long the last round took that looked at every domain of a '
                      'pool.', ('pool', 'kind'))
AUDIT_ENDED_AT = Gauge('designate_pool_audit_timestamp_seconds', 'When that round had looked at everything.',
                       ('pool', 'kind'))
AUDIT_STARTED_AT = Gauge('designate_pool_audit_started_timestamp_seconds', 'When the present round began; later than '
                         'now while it waits to begin.', ('pool', 'kind'))
AUDIT_INTERVAL = Gauge('designate_pool_audit_interval_seconds', 'In which a round is to be done; 0 for never.',
                       ('pool', 'kind'))
AUDIT_DOMAINS = Gauge('designate_pool_audit_domains', 'Domains that it looked at.', ('pool', 'kind'))
AUDIT_COVERAGE = Gauge('designate_pool_audit_coverage', 'Of these domains on all servers that should have them, the '
                       'share that a server answered for, 0 to 1.', ('pool', 'kind'))
AUDIT_UNANSWERED = Gauge('designate_pool_audit_unanswered', 'Questions of that round that no answer came to.',
                         ('pool', 'kind'))
AUDIT_FINDINGS = Gauge('designate_pool_audit_findings', 'What it found that was thought to be right and was not.',
                       ('pool', 'kind'))

# MiniDNS.
POLLS = Counter('designate_pool_polls', 'SOA polls that have come to their end, with all their tries.',
                ('server', 'outcome'))
POLL_SECONDS = Histogram('designate_pool_poll_seconds', 'How long a poll took, with all its tries.', _SERVER,
                         buckets=LONG)
POLLS_IN_FLIGHT = Gauge('designate_pool_polls_in_flight', 'SOA polls under way.')
AUDITED = Counter('designate_pool_audited', "What servers said to the audit's questions for serials.",
                  ('server', 'outcome'))
NOTIFIES = Counter('designate_pool_notifies', 'NOTIFYs that have come to their end, with all their tries.',
                   ('server', 'outcome'))
TRANSFERS = Counter('designate_pool_transfers', 'What servers asked MiniDNS for, AXFR, IXFR or SOA, and what became '
                    'of it; ixfr_whole is an IXFR that was sent the whole zone.', ('server', 'kind', 'outcome'))
TRANSFER_SECONDS = Histogram('designate_pool_transfer_seconds', 'How long a transfer took that was sent to its end.',
                             ('server', 'kind'), buckets=LONG)
TRANSFER_BYTES = Counter('designate_pool_transfer_bytes', 'Octets of answer sections in transfers that were sent to '
                         'their end.', ('server', 'kind'))
REFUSED = Counter('designate_pool_refused_queries', 'Queries of those who are not let in, by the reason.', ('reason',))

# Central.
TRANSITIONS = Counter('designate_pool_domain_transitions', 'Domains that have come into a status.',
                      ('pool', 'status'))
CONVERGENCE_SECONDS = Histogram('designate_pool_convergence_seconds', 'From a change of a domain until its pool '
                                'agreed on it.', ('pool', 'action'), buckets=WAITING)
NOTIFICATIONS = Counter('designate_pool_notifications', 'Notifications sent, failed, or dropped since too many '
                        'waited.', ('outcome',))

# Between the services, and the database.
RPC_CALLS = Counter('designate_pool_rpc_calls', 'Calls to another service that have come to their end.',
                    ('service', 'method', 'outcome'))
RPC_SECONDS = Histogram('designate_pool_rpc_call_seconds', 'How long a call to another service took.',
                        ('service', 'method'), buckets=LONG)
RPC_CASTS = Counter('designate_pool_rpc_casts', 'Messages to another service that are not answered.',
                    ('service', 'method', 'outcome'))
TRANSACTIONS = Counter('designate_pool_database_transactions', 'Transactions by kind, read or write.',
                       ('kind', 'outcome'))
TRANSACTION_SECONDS = Histogram('designate_pool_database_transaction_seconds', 'How long a transaction took, with the '
                                'waits for a connection and for locks, and with all its tries.', ('kind',),
                                buckets=SHORT)
TRANSACTION_RETRIES = Counter('designate_pool_database_retries', 'Transactions begun once more, since the database '
                              'lost them for a reason that passes.')

# The API.
REQUESTS = Counter('designate_pool_api_requests', "Requests that were answered, by the document's operation.",
                   ('operation', 'status'))
REQUEST_SECONDS = Histogram('designate_pool_api_request_seconds', 'From a request that is there in full to its answer.',
                            ('operation',), buckets=LONG)

# The webhook for external-dns.
WEBHOOK_REQUESTS = Counter('designate_pool_webhook_requests', 'Requests of external-dns that were answered.',
                           ('request', 'status'))
WEBHOOK_SECONDS = Histogram('designate_pool_webhook_request_seconds', 'How long the answer took, with what the API of '
                            'the pool was asked.', ('request',), buckets=LONG)
WEBHOOK_REFUSED = Gauge('designate_pool_webhook_endpoints_refused', 'Endpoints that external-dns wanted the last time '
                        'and that were left out, since they cannot be; the log says why.')
WEBHOOK_CHANGES = Counter('designate_pool_webhook_changes', 'Changes of RRsets that external-dns had made.')

_OF_SERVER = (ROWS_WAITING, ROWS_DUE, ROWS_FAILING, ROWS_DIVERGED, ROWS_IN_HAND, DUE_AGE, BEHIND, LAG)


def forget_server(pool: str, server: str, states: Sequence[str], channels: Sequence[str]) -> None:
    """Say nothing more about a server that is no longer there; what was counted stays."""
    for gauge in _OF_SERVER:
        gauge.remove(pool, server)
    for state in states:
        SERVER_STATE.remove(pool, server, state)
    for channel in channels:
        CIRCUIT_OPEN.remove(pool, server, channel)


def names() -> set[str]:
    """The names of all samples that there can be, those of the libraries' metrics too."""
    found: set[str] = set()
    for family in REGISTRY.collect():
        suffixes = {'counter': ('_total', '_created'), 'histogram': ('_bucket', '_sum', '_count', '_created'),
                    'info': ('_info',)}
        found.update(family.name + suffix for suffix in suffixes.get(family.type, ('',)))
    return found
