"""The state of a zone and of a recordset on each server.  Pure: values and the URL of the API in, JSON out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from designate_pool import consensus
from designate_pool.api.schema.answers import (ACTION, COUNT, FLAG, ID, MOMENT, REASON, RELEASE, SERIAL, SERVER_STATE,
                                               STATUS, TEXT, TEXTS, WAITS_FOR, AnswerField, AnswerForm, Json, choice,
                                               inline, many, maybe, moment, one, zone_path)
from designate_pool.api.services import wait_verdict
from designate_pool.api.services.wait_verdict import WaitTarget, ZoneState
from designate_pool.model import (LAST_STAGE, Action, Audit, Domain, Endpoint, Master, Outcome, Pool, PoolServer,
                                  Reason, RecordSet, RefreshState, ServerState, ServerStatus, dashed, stages)

_DNS_PORT = 53
_RESTING = (ServerState.MAINTENANCE, ServerState.JOINING)
_LEFT = (ServerState.DRAINING, ServerState.REMOVED)
#: A server's label has the driver, the address, and the view if there is one.
SERVER_IDENTITY = {
    'id': ID,
    'name': TEXT.of('label'),
    'driver': TEXT,
    'host': TEXT.of(lambda server: _address(server)[0].strip('[]')),
    'port': COUNT.of(lambda server: int(_address(server)[1])),
    'state': SERVER_STATE,
    'state_since': maybe(MOMENT),
    'silent_since': maybe(MOMENT).about('Since when it has answered nobody; null while it answers.'),
}
_IDENTITY = AnswerForm('', SERVER_IDENTITY)
KNOWN = maybe(COUNT).about('Null where the threshold is not known.')
_REFRESH = AnswerForm('', {
    'checked_at': maybe(MOMENT).about('When a master last had the serial of the zone.'),
    'checked_with': maybe(TEXT).of('master').about('That master.'),
    'next_refresh_at': maybe(MOMENT).of('next_at'),
    'failures': COUNT.about('Refreshes that have failed since.'),
    'last_error': maybe(TEXT).about('Why the last refresh failed; null if it did not.'),
})
_NO_REFRESH = {**dict.fromkeys(_REFRESH.fields), 'failures': 0}
SECONDARY = AnswerForm('', {
    'masters': TEXTS.of(lambda domain: masters(domain)),
    'served': FLAG.of(lambda domain: not domain.awaits_transfer).about(
        'Whether it was transferred, and has not expired since.'),
    'transferred_at': maybe(MOMENT).about('When it got its serial.'),
    **_REFRESH.fields,
    'expires_at': maybe(MOMENT).about('When it expires unless a master is reached before.'),
}, description='Of a secondary zone: how it follows its masters.')
ZONE_SERVER = AnswerForm('ZoneServer', {
    **SERVER_IDENTITY,
    'counts': FLAG,
    'action': ACTION,
    'status': choice('PENDING', 'SUCCESS', 'ERROR').of(lambda row: row.status.value if row.status else 'PENDING'),
    'current': FLAG,
    'released': FLAG.about('It may have the newest contents, or those that are being released in stages.'),
    'serial': maybe(SERIAL).of('serial_number').about('The newest that was seen there.'),
    'seen_at': maybe(MOMENT).about('When that serial was last seen there.'),
    'signs': FLAG.about('It was found to sign its zones, so that its serials are its own.'),
    'expected_serial': maybe(SERIAL),
    'diverged': FLAG.about('It serves other contents under its serial.'),
    'last_error': maybe(TEXT),
    'reason': REASON.of(lambda row: row.reason if row.last_error is not None else None),
    'attempts': COUNT,
    'next_attempt_at': maybe(MOMENT),
    'deadline_at': maybe(MOMENT),
    'plan_id': maybe(ID).about('A plan that waits for approval.'),
    'created_at': maybe(MOMENT),
    'updated_at': maybe(MOMENT),
})
ZONE_SERVERS = AnswerForm('ZoneServers', {
    'zone_id': ID.of('id'),
    'zone_name': TEXT.of('shown_name'),
    'serial': SERIAL,
    'content_serial': SERIAL.of('least_serial').about(
        'From which on a server has the present contents: later serials only renew signatures.'),
    'reported_serial': maybe(SERIAL),
    'status': STATUS,
    'action': ACTION,
    'threshold_percentage': maybe(AnswerField({'type': 'number'})),
    'needed': maybe(COUNT),
    'total': maybe(COUNT),
    'current': COUNT,
    'resting': many(ID),
    'servers': many(one(ZONE_SERVER)),
    'secondary': maybe(inline(SECONDARY)),
    'freeze': WAITS_FOR,
    'release': RELEASE,
}, {'self': lambda domain: f'{zone_path(domain.id)}/servers', 'zone': lambda domain: zone_path(domain.id)})
_RECORDSET_SERVER = AnswerForm('', {
    **{name: SERVER_IDENTITY[name] for name in ('id', 'name', 'state')},
    'counts': FLAG,
    'serial': ZONE_SERVER.fields['serial'],
    'served': FLAG,
})
RECORDSET_SERVERS = AnswerForm('RecordSetServers', {
    'zone_id': ID.of('domain_id'),
    'zone_name': TEXT,
    'recordset_id': ID.of('id'),
    'name': TEXT,
    'type': TEXT,
    'serial': SERIAL.about('At which the recordset was changed last.'),
    'status': STATUS,
    'action': ACTION,
    'needed': KNOWN,
    'total': KNOWN,
    'current': COUNT,
    'servers': many(inline(_RECORDSET_SERVER)),
}, {'self': lambda recordset: f'{zone_path(recordset.domain_id)}/recordsets/{dashed(recordset.id)}/servers',
    'zone': lambda recordset: zone_path(recordset.domain_id)})


def masters(domain: Domain) -> list[str]:
    """The masters, without the port where that is the usual one."""
    parsed = [Master.parse(master) for master in domain.masters.split(',') if master]
    return [master.endpoint.host if master == Master(Endpoint(master.endpoint.host, _DNS_PORT)) else str(master)
            for master in parsed]


def zone_servers(domain: Domain, servers: Sequence[PoolServer], rows: Iterable[ServerStatus], pool: Pool,
                 base: str, parked: Mapping[str | None, str] | None = None,
                 refreshed: RefreshState | None = None, audit: Audit | None = None) -> Json:
    """The state of a domain on each server of its pool, and how many of them are needed.

    A server is *current* when it has what is due: the domain's contents, or those which servers of a frozen pool may
    have, or newer ones, or no zone where the domain is being deleted.  A server *counts* when it is active, and, where
    the pool counts them, while it joins; ``total``, ``needed`` and ``current`` are about these, and ``resting`` names
    those that will count again.  A server without a row of a domain that is being deleted is left out unless it counts.

    :param servers: of the domain's pool; the removed ones are left out
    :param pool: of the domain; the counts are null where its threshold was never published
    :param parked: ids of the plans that wait for approval, by server
    :param refreshed: of a secondary domain; None where that is not known
    :param audit: of serials
    """
    by_server, release, newest = consensus.by_server(rows), domain.release, domain.permitted_at(0) or domain
    present = [server for server in servers if server.state is not ServerState.REMOVED]
    stage_of = stages(pool.release_stages, [
        server for server in servers if server.state not in _LEFT or server.dismissed])
    shown = []
    for server in present:
        stage = stage_of.get(server.id, LAST_STAGE)
        counts = consensus.counts(server, pool.count_joining_servers)
        actions = by_server.get(server.id, {})
        if counts or actions or not domain.is_going:
            shown.append(_on_server(domain.permitted_at(stage) or domain, newest, server, actions, counts,
                                    (parked or {}).get(server.id), audit, release is None or stage <= release.stage))
    published, total = pool.published_at is not None, sum(server_status['counts'] for server_status in shown)
    return ZONE_SERVERS.show(
        domain, base,
        threshold_percentage=pool.threshold_percentage if published else None,
        needed=wait_verdict.needed(total, pool),
        total=total if published else None,
        current=sum(server_status['counts'] and server_status['current'] for server_status in shown),
        resting=[server_status['id'] for server_status in shown
                 if not server_status['counts'] and server_status['state'] in _RESTING],
        servers=shown,
        secondary=_secondary(domain, refreshed))


def _on_server(domain: Domain, newest: Domain, server: PoolServer, rows: dict[Action, ServerStatus], counts: bool,
               plan_id: str | None, audit: Audit | None, released: bool) -> Json:
    due = Action.DELETE if domain.action is Action.DELETE else Action.CREATE
    row = row_that_matters(domain, rows) or ServerStatus(server.id, domain.id, due, domain.serial, id='')
    return ZONE_SERVER.show(row, **_IDENTITY.show(server), counts=counts, released=released,
                            current=consensus.is_current(domain, rows) or consensus.is_current(newest, rows),
                            plan_id=plan_id and dashed(plan_id), seen_at=moment(_seen_at(domain, row, server, audit)),
                            signs=Reason.SIGNS in (server.reason, row.reason))


def _seen_at(domain: Domain, row: ServerStatus, server: PoolServer, audit: Audit | None) -> datetime | None:
    """When the server was last seen to serve its serial; rounds of the audit that find it again write no rows."""
    if (audit is not None and audit.last_started_at is not None and audit.last is not None and audit.last.coverage == 1
            and server.polled and server.state is ServerState.ACTIVE and row.seen_at is not None
            and row.status is Outcome.SUCCESS and row.next_attempt_at is None and row.serial_number == domain.serial
            and max(row.updated_at or row.seen_at, server.state_since or row.seen_at) <= audit.last_started_at):
        return audit.last_started_at
    return row.seen_at


def _address(server: PoolServer) -> tuple[str, str]:
    address, _, _ = server.label.removeprefix(f'{server.driver}:').partition('/')
    host, _, port = address.rpartition(':')
    return host, port


def row_that_matters(domain: Domain, rows: dict[Action, ServerStatus]) -> ServerStatus | None:
    """The row of what a server lacks: DELETE while the domain is deleted, CREATE until it succeeds, then UPDATE."""
    if domain.action is Action.DELETE:
        return rows.get(Action.DELETE)
    create, update = rows.get(Action.CREATE), rows.get(Action.UPDATE)
    if create and create.status is not Outcome.SUCCESS:
        return create
    return update or create


def _secondary(domain: Domain, refreshed: RefreshState | None) -> Json | None:
    """How a secondary zone follows its masters."""
    if not domain.is_secondary:
        return None
    expires_at = None
    if refreshed is not None and refreshed.checked_at is not None:
        expires_at = refreshed.checked_at + timedelta(seconds=domain.expire)
    return SECONDARY.show(domain, expires_at=moment(expires_at),
                          **(_NO_REFRESH if refreshed is None else _REFRESH.show(refreshed)))


def recordset_servers(domain: Domain, recordset: RecordSet, serial: int, state: ZoneState, base: str) -> Json:
    """The state of a recordset's last change on each server of the pool, with counts.

    :param serial: at which the recordset was changed last
    :param state: of *domain*, with servers, rows and pool
    :returns: ``needed`` and ``total`` are null where the pool's threshold is not known
    """
    counting = wait_verdict.counting(state)
    needed = wait_verdict.needed(len(counting), state.pool)
    rows = consensus.by_server(state.rows)
    servers = []
    for server in state.servers:
        actions = rows.get(server.id, {})
        row = actions.get(Action.UPDATE)
        if row is not None or server.state not in _LEFT:
            servers.append(_RECORDSET_SERVER.show(server, counts=server in counting, serial=row and row.serial_number,
                                                  served=consensus.serves(domain, actions, serial)))
    return RECORDSET_SERVERS.show(
        recordset, base, zone_name=domain.shown_name, serial=serial, needed=needed,
        total=None if needed is None else len(counting),
        current=len(wait_verdict.current(WaitTarget(domain.id, serial), state)), servers=servers)
