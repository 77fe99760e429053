"""The values that the services pass to each other: frozen dataclasses that use the standard library alone.

Ids are 32 hexadecimal digits.  Times are aware datetimes in UTC.  Names are absolute, lower case, with the final dot.
Serials are whole numbers from 0 to 4294967295; None means that no serial has been seen.
"""

from designate_pool.model.audits import Audit, AuditFinding, AuditKind, Counts
from designate_pool.model.domains import (CATALOG_ID, Change, Context, Domain, Record, RecordChange, RecordSet,
                                          ZoneBlock, ZoneDifference, ZoneHead, ZoneRecord, ZoneStep)
from designate_pool.model.operations import (CallResult, Comparison, Finding, Listing, PollRequest, PollResult, Report,
                                             ServerStatus, Verdict)
from designate_pool.model.plans import PlanState, StoredPlan
from designate_pool.model.pools import (HIDDEN_SECRET, LONGEST_LABEL, TSIG_ALGORITHMS, AlsoNotify, Endpoint, Option,
                                        Pool, PoolServer, Reloaded, Server, ServerReport, TsigKey)
from designate_pool.model.resources import (PTR, Blacklist, FloatingIp, KeyScope, ManagedRecord, ServiceStatus,
                                            StoredTsigKey, Tld)
from designate_pool.model.secondaries import MasterRecord, RefreshState, RefreshTask, ZoneTransferIn
from designate_pool.model.tasks import (TransferStatus, ZoneShare, ZoneTask, ZoneTaskKind, ZoneTaskStatus,
                                        ZoneTransferAccept, ZoneTransferRequest)
from designate_pool.model.words import (Action, Answer, Outcome, Reason, ServerState, Status, Task, Word, dashed,
                                        new_id, new_ids, utcnow)

__all__ = [
    'LONGEST_LABEL',
    'HIDDEN_SECRET', 'TSIG_ALGORITHMS',
    'Word',
    'Action',
    'Task',
    'Status',
    'Outcome',
    'Answer',
    'Reason',
    'dashed',
    'new_id',
    'new_ids',
    'utcnow',
    'CATALOG_ID',
    'Context',
    'Domain',
    'Record',
    'RecordSet',
    'RecordChange',
    'ZoneBlock',
    'ZoneHead',
    'ZoneRecord',
    'Change',
    'ZoneStep',
    'ZoneDifference',
    'AuditFinding',
    'AuditKind',
    'Audit',
    'Counts',
    'TsigKey',
    'AlsoNotify',
    'Endpoint',
    'Server',
    'Pool',
    'ServerStatus',
    'Verdict',
    'Report',
    'PollRequest',
    'PollResult',
    'CallResult',
    'Option',
    'PoolServer',
    'ServerReport',
    'ServerState',
    'Reloaded',
    'Listing',
    'Finding',
    'Comparison',
    'PlanState',
    'ZoneTask',
    'ZoneTaskKind',
    'ZoneTaskStatus',
    'TransferStatus',
    'ZoneTransferRequest',
    'ZoneTransferAccept',
    'ZoneShare',
    'MasterRecord',
    'RefreshState',
    'RefreshTask',
    'ZoneTransferIn',
    'StoredPlan',
    'KeyScope',
    'StoredTsigKey',
    'Tld',
    'Blacklist',
    'PTR',
    'ManagedRecord',
    'FloatingIp',
    'ServiceStatus',
]
