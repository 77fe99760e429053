"""The values that the services pass to each other: frozen dataclasses that use the standard library alone.

Ids are 32 hexadecimal digits.  Times are aware datetimes in UTC.  Names are absolute, lower case, with the final dot.
Serials are whole numbers from 0 to 4294967295; None means that no serial has been seen.
"""

from designate_pool.model.domains import (CATALOG_ID, Actor, Change, ChangedSet, Context, Domain, MasterRecord,
                                          PageRequest, Record, RecordChange, RecordSet, RefreshState, RefreshTask,
                                          Revert, TransferStatus, Version, ZoneHead, ZoneRecord, ZoneShare, ZoneStep,
                                          ZoneTask, ZoneTaskKind, ZoneTaskStatus, ZoneTransferAccept, ZoneTransferIn,
                                          ZoneTransferRequest)
from designate_pool.model.freezes import (LAST_STAGE, NOTHING, Freeze, Release, hold, parse_stages, permitted, staged,
                                          stages)
from designate_pool.model.operations import (Audit, AuditFinding, AuditKind, CallResult, Comparison, Counts, Finding,
                                             Listing, PlanState, PollRequest, PollResult, Report, ServerStatus,
                                             StoredPlan, Verdict)
from designate_pool.model.pools import (HIDDEN_SECRET, LONGEST_LABEL, PTR, TLS_PORT, TSIG_ALGORITHMS, AlsoNotify,
                                        Blacklist, Endpoint, FloatingIp, KeyScope, ManagedRecord, Master, Option, Pool,
                                        PoolServer, Reloaded, Server, ServerReport, ServiceStatus, StoredTsigKey, Tld,
                                        TsigKey)
from designate_pool.model.signed_zones import (KeyRole, KeyState, SignedDifference, SignedRecord, SigningKey,
                                               SigningState, ZoneSigning)
from designate_pool.model.words import (Action, Answer, ChangeKind, Outcome, Reason, ServerState, Status, Task, Word,
                                        dashed, new_id, new_ids, some, utcnow)

__all__ = [
    'Action', 'Actor', 'AlsoNotify', 'Answer', 'Audit', 'AuditFinding', 'AuditKind', 'Blacklist', 'CATALOG_ID',
    'CallResult', 'Change', 'ChangeKind', 'ChangedSet', 'Comparison', 'Context', 'Counts', 'Domain', 'Endpoint',
    'Finding', 'FloatingIp', 'Freeze', 'HIDDEN_SECRET', 'KeyRole', 'KeyScope', 'KeyState', 'LAST_STAGE',
    'LONGEST_LABEL', 'Listing', 'ManagedRecord', 'Master', 'MasterRecord', 'NOTHING', 'Option', 'Outcome', 'PTR',
    'PageRequest', 'PlanState', 'PollRequest', 'PollResult', 'Pool', 'PoolServer', 'Reason', 'Record', 'RecordChange',
    'RecordSet', 'RefreshState', 'RefreshTask', 'Release', 'Reloaded', 'Report', 'Revert', 'Server', 'ServerReport',
    'ServerState', 'ServerStatus', 'ServiceStatus', 'SignedDifference', 'SignedRecord', 'SigningKey', 'SigningState',
    'Status', 'StoredPlan', 'StoredTsigKey', 'TLS_PORT', 'TSIG_ALGORITHMS', 'Task', 'Tld', 'TransferStatus', 'TsigKey',
    'Verdict', 'Version', 'Word', 'ZoneHead', 'ZoneRecord', 'ZoneShare', 'ZoneSigning', 'ZoneStep', 'ZoneTask',
    'ZoneTaskKind', 'ZoneTaskStatus', 'ZoneTransferAccept', 'ZoneTransferIn', 'ZoneTransferRequest', 'dashed', 'hold',
    'new_id', 'new_ids', 'parse_stages', 'permitted', 'some', 'staged', 'stages', 'utcnow']
