"""``designate-pool zone ...``: zones themselves, and zones that other projects use, or get."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterable, Iterator

from designate_pool.cli import terminal
from designate_pool.cli.base import (AT, DESCRIPTION, POOL_OPTIONS, REASON, ZONE, ZONE_COLUMNS, ApiCommand, Argument,
                                     Arguments, ChangeCommand, Lister, OneOf, Shown, ShowOne, all_columns,
                                     changes_given, columns, create_command, delete_command, list_command, page,
                                     page_options, positive, rows, set_command, show_command, task_command, ttl)
from designate_pool.cli.client import ApiRefusal, Json, Resource, in_zone, of_zone, version_path
from designate_pool.cli.connection import CliError
from designate_pool.planner.providers.pool_api import LARGEST_PAGE

LIST_COLUMNS = ('id', 'name', 'serial', 'status', 'action')
SECONDARY_COLUMNS = ('type', 'masters', 'transferred_at')
SORTED_BY = ('name', 'email', 'status', 'ttl', 'serial', 'created_at', 'updated_at')


_MASTERS = Argument('--master', '--masters', dest='masters', metavar='ADDRESS', action='extend', nargs='+',
                    help='of a secondary zone: a server to transfer it from, such as 192.0.2.1 or [2001:db8::1]:5300; '
                         'over TLS at port 853, or 192.0.2.1#NAME, which its certificate has to prove; '
                         'may be given again')
_DELETE_SHARES = Argument('--delete-shares', action='store_true',
                          help='also if it is shared with other projects, whose recordsets in it end with it')
_DELETED = Argument('zone', metavar='ZONE', help='its name or id; of several deleted ones of a name, the newest')


class _Zone(ApiCommand):
    """A command about one zone."""

    arguments: Arguments = (ZONE,)

    def path(self, parsed_args: argparse.Namespace) -> str:
        return f'/v2/zones/{self.client.zone(parsed_args.zone)["id"]}'


def _shown(zone: Json) -> Shown:
    """A zone, with the masters of a secondary one."""
    return columns(zone, (*ZONE_COLUMNS, *SECONDARY_COLUMNS) if zone.get('type') == 'SECONDARY' else ZONE_COLUMNS)


_task = functools.partial(task_command, _Zone, show=_shown)


class _ChangeZone(ChangeCommand):
    """Changes a zone itself."""

    def change_zone(self, parsed_args: argparse.Namespace, method: str, path: str, body: Json | None = None,
                    refresh_before: Json | None = None) -> Shown:
        """Ask the API for the change, and wait for it if told to."""
        zone = self.send_change(method, path, body)
        if body and refresh_before and zone['masters'] == refresh_before['masters']:
            refresh_before = None  # there is no refresh
        if self.wait_if_told(parsed_args, zone, zone['serial'], refresh_before=refresh_before):
            zone = self.client.zone(zone['id'])
        return _shown(zone)


class ZoneCreate(_ChangeZone):
    """Create a zone.

    The contents of a secondary zone come from its masters, from which MiniDNS transfers them.
    """

    arguments = (
        Argument('name', metavar='NAME', help='such as example.com; the final dot may be left out'),
        Argument('--email', help='of whoever is responsible for the zone; required of a primary zone'),
        Argument('--type', type=str.upper, choices=('PRIMARY', 'SECONDARY'), default='PRIMARY'),
        _MASTERS,
        Argument('--ttl', type=ttl, metavar='TTL', help='in seconds, or as 1h, for records without their own'),
        Argument('--description'),
        *POOL_OPTIONS)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = {'name': of_zone(parsed_args.name), 'email': parsed_args.email, 'ttl': parsed_args.ttl,
                'description': parsed_args.description}
        if parsed_args.type == 'SECONDARY' and not parsed_args.masters:
            raise CliError('A secondary zone needs --master.')
        if parsed_args.type == 'SECONDARY':
            body |= {'type': parsed_args.type, 'masters': parsed_args.masters}
        elif parsed_args.masters:
            raise CliError('Only a secondary zone has masters; give --type SECONDARY too.')
        elif parsed_args.email is None:
            raise CliError('A primary zone needs --email.')
        pool = self.pool_id(parsed_args)
        if pool or parsed_args.attributes:
            body['attributes'] = {**(parsed_args.attributes or {}), **pool}
        return self.change_zone(parsed_args, 'POST', '/v2/zones', body)


class ZoneList(Lister):
    """List zones."""

    arguments = (
        Argument('--name', help='only this name; * stands for anything'),
        Argument('--type', type=str.upper, choices=('PRIMARY', 'SECONDARY')),
        Argument('--status', type=str.upper, choices=('PENDING', 'ACTIVE', 'ERROR', 'DELETED')),
        Argument('--email', help='only those of this address; * stands for anything'),
        Argument('--ttl', type=ttl, metavar='TTL', help='only those of this TTL'),
        Argument('--description', help='only those described so; * stands for anything'),
        Argument('--pool', metavar='POOL', help='only those of this pool; its name or id'),
        *page_options(SORTED_BY))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        name = parsed_args.name
        if name is not None and not name.endswith('*'):
            name = of_zone(name)
        filters = {'name': name, 'type': parsed_args.type, 'status': parsed_args.status, 'email': parsed_args.email,
                   'ttl': parsed_args.ttl, 'description': parsed_args.description, **self.pool_id(parsed_args)}
        zones: Iterable[Json] = self.client.every('/v2/zones', 'zones', **page(parsed_args), **filters)
        shown = LIST_COLUMNS if not self.app.options.all_projects else (*LIST_COLUMNS, 'project_id')
        if parsed_args.formatter == 'table' and not (
                self.app.options.all_projects or self.app.options.project or parsed_args.limit or parsed_args.marker):
            zones = list(zones)
            self._hint(len(zones), filters)
        return rows(shown, zones)

    def _hint(self, listed: int, wanted: Json) -> None:
        """Mention zones of other projects to whoever may see them: a list without them looks like a loss."""
        if listed < LARGEST_PAGE and self.client.may_see_everything() and listed < sum(
                1 for _ in self.client.every('/v2/zones', 'zones', most=listed + 1, **wanted)):
            self.app.stderr.write('There are zones of other projects as well; --all-projects lists them too.\n')


class ZoneGive(Lister):
    """Give zones to a project.

    It is for administrators. After a change from noauth to tokens, --unowned gives away the zones of no project. The
    exit code is 1 if a zone could not be given; the others are.
    """

    arguments = (
        OneOf(Argument('--zone', metavar='ZONE', action='append', help='its name or id; may be given again'),
              Argument('--unowned', action='store_true', help='all zones that belong to no project'), required=True),
        Argument('--to', metavar='PROJECT', required=True, help='the id of the project'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        self.client.for_all_projects()
        if parsed_args.unowned:
            zones = [zone for zone in self.client.every('/v2/zones', 'zones', sort_key='name')
                     if not zone['project_id'] and zone['action'] != 'DELETE']
        else:
            zones = [self.client.zone(zone_name) for zone_name in parsed_args.zone]
        return rows((*LIST_COLUMNS, 'project_id'), self._give_each(zones, parsed_args.to))

    def _give_each(self, zones: Iterable[Json], project_id: str) -> Iterator[Json]:
        """The zones that were given; the others are told, with the reasons."""
        for zone in zones:
            try:
                yield self.client.json('POST', f'/v2/zones/{zone["id"]}/project', {'project_id': project_id})
            except ApiRefusal as error:
                self.exit_code = 1
                self.app.stderr.write(f'{zone["name"]} is not given: {error}\n')


class ZoneShow(_Zone, ShowOne):
    """Show a zone."""

    arguments = (AT,)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        if parsed_args.at is not None:
            return all_columns(self.client.get(version_path(self.client.any_zone_id(parsed_args.zone), parsed_args.at)))
        return _shown(self.client.zone(parsed_args.zone))


class ZoneSet(_Zone, _ChangeZone):
    """Change a zone's email, TTL or description, the masters of a secondary zone, or whether changes need approval."""

    arguments = (
        Argument('--email'), Argument('--ttl', type=ttl, metavar='TTL'), _MASTERS, DESCRIPTION,
        OneOf(Argument('--require-approval', action='store_const', const=True, dest='requires_approval',
                       help='changes by those who may not approve them wait for approval by somebody else'),
              Argument('--no-approval', action='store_const', const=False, dest='requires_approval')))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        path, body, before = self.path(parsed_args), changes_given(parsed_args, self.arguments), None
        if parsed_args.wait is not None and 'masters' in body:
            before = self.client.get(f'{path}/servers')['secondary']
        return self.change_zone(parsed_args, 'PATCH', path, body, before)


class ZoneRefresh(_Zone, _ChangeZone):
    """Refresh a secondary zone from its masters now.

    It is transferred if a master has a newer serial. Otherwise that is done when the SOA of the zone
    says so, and when a master notifies MiniDNS.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        path = self.path(parsed_args)
        before = None if parsed_args.wait is None else self.client.get(f'{path}/servers')['secondary']
        return self.change_zone(parsed_args, 'POST', f'{path}/tasks/xfr', refresh_before=before)


class ZoneMove(_Zone, _ChangeZone):
    """Move a zone to another pool.

    It is for administrators; with --wait it ends when that pool serves the zone. The servers of the
    former pool keep the zone until then, and for a time afterwards.
    """

    arguments = (
        Argument('--pool', metavar='POOL', help='its name or id; not given: the one that the attributes of the zone '
                                                'choose'),)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return self.change_zone(parsed_args, 'POST', f'{self.path(parsed_args)}/tasks/pool_move',
                                self.pool_id(parsed_args))


class ZoneAbandon(_Zone):
    """Delete a zone here and leave it on its servers.

    It is for administrators. The servers keep the zone and are not told of it any more.
    """

    arguments = (_DELETE_SHARES,)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('POST', f'{self.path(parsed_args)}/tasks/abandon', headers=_delete_shares(parsed_args))


ZoneLock = _task('tasks/lock', """Lock a zone: nobody can change or delete it, or its records, until it is unlocked.

    What an administrator has locked, administrators alone unlock. The pool goes on serving the zone, and
    a secondary zone goes on following its masters.
    """, REASON)
ZoneUnlock = _task('tasks/unlock', 'Unlock a zone.')
ZoneUnfreeze = _task('tasks/unfreeze', """Serve the changes of a zone that wait since its pool is frozen, before the \
pool is unfrozen.

    Later changes of the zone wait again. The reason is kept in the history of the zone.
    """, REASON)
ZoneReleaseContinue = _task('tasks/continue_release', 'Have the staged release of a zone go on with the next stage; '
                                                      'with the first, where a server has failed.')
ZoneReleaseAbort = _task('tasks/abort_release',
                         'Give all servers the contents that a zone had before its staged release.')


def _signing(found: Json) -> Shown:
    """How far the signing of a zone has come."""
    return columns({**found, 'keys': [
        f'{key["role"]} {key["tag"]} {key["state"]}{" until " + key["next_at"][:19] if key["next_at"] else ""}'
        for key in found['keys']]},
                   ('zone_name', 'state', 'since', 'waits_for', 'policy', 'algorithm', 'denial', 'keys', 'ds',
                    'ds_seen', 'skipped', 'resign_at'))


class ZoneDnssecShow(_Zone, ShowOne):
    """Show how far the signing of a zone has come, and what it waits for."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return _signing(self.client.get(f'{self.path(parsed_args)}/dnssec'))


class ZoneDnssecDisable(_Zone):
    """Have a zone unsigned.

    It stays signed until its parent, and caches, have the DS no more; say so by 'zone dnssec confirm-ds --gone'.
    """

    arguments = (Argument('--force', action='store_true',
                          help='without waiting for the parent to remove the DS: resolvers that have it then refuse '
                               'all answers of the zone'),)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        path = f'{self.path(parsed_args)}/dnssec'
        self.client.get(path)  # refused for a zone that is not signed
        self.client.send('DELETE', f'{path}{"?force=true" if parsed_args.force else ""}')
        self.app.stderr.write("'designate-pool zone dnssec show' tells whether it is signed still, and what that waits "
                              'for.\n')


class ZoneDnssecKeys(_Zone, Lister):
    """List the keys of a signed zone, and what each waits for."""

    long_columns = ('dnskey',)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(('id', 'role', 'tag', 'state', 'since', 'next_at', 'waits_for', 'dnskey'),
                    self.client.get(f'{self.path(parsed_args)}/dnssec')['keys'])


class ZoneDnssecDs(_Zone, Lister):
    """List the DS records that the parent of a signed zone is to have."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(('ds',), ({'ds': ds} for ds in self.client.get(f'{self.path(parsed_args)}/dnssec')['ds']))


ZoneDnssecEnable = _task('dnssec', """Have a zone signed.

    Its keys are made, and each of its changes is signed from then on. The DS for its parent is offered once all
    servers have the signed zone and caches have forgotten the unsigned one; 'zone dnssec ds' shows it.
    """, Argument('--policy', default='default', metavar='NAME',
                  help='a section [dnssec_policy:NAME] of the configuration; "default" if not given'),
                         show=_signing)
ZoneDnssecRoll = _task('dnssec/tasks/roll', """Have a new key follow the active one of a role.

    The former one stays in the zone for as long as anything relies on it.
    """, Argument('role', metavar='ROLE', type=str.upper, choices=('KSK', 'ZSK', 'CSK'), help='KSK, ZSK or CSK'),
                       show=_signing)
ZoneDnssecConfirmDs = _task('dnssec/tasks/confirm_ds', """Say that all servers of the parent of a signed zone have the \
DS of its keys.

    It is believed. Ask each server of the parent first.
    """, Argument('--gone', action='store_false', dest='present', help='say that none of them has any more'),
                            show=_signing)
ZoneDnssecSkipServer = _task('dnssec/tasks/skip_server', """Have the keys of a signed zone wait no more for a server.

    It is for administrators: what a server answers that is behind is refused by resolvers. A server of the pool that
    has caught up is waited for again by itself.
    """, Argument('server', metavar='SERVER', help='as the zone waits for it'),
                             Argument('--reason', metavar='TEXT',
                                      help='why; without it the server is waited for again'), show=_signing)


class ZoneReleaseShow(_Zone, ShowOne):
    """Show how far the staged release of a zone has come."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.get(f'{self.path(parsed_args)}/explain')
        return all_columns({'name': zone['zone_name'], 'status': zone['status'], **(zone['release'] or {'stage': None}),
                            'summary': zone['summary']})


class ZoneDelete(_Zone, _ChangeZone):
    """Delete a zone, from the database and from every server."""

    arguments = (_DELETE_SHARES,)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.send_change('DELETE', self.path(parsed_args), headers=_delete_shares(parsed_args))
        if self.wait_if_told(parsed_args, zone, deletes=True) and not self.exit_code:
            zone = {**zone, 'action': 'NONE', 'status': 'DELETED'}
        return _shown(zone)


class ZoneDeleted(Lister):
    """List deleted zones that can be restored.

    With --all-projects administrators see those of all projects.
    """

    arguments = (Argument('--name', help='only this name; * stands for anything'), *page_options(SORTED_BY))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        name = parsed_args.name if parsed_args.name is None or parsed_args.name.endswith('*') else of_zone(
            parsed_args.name)
        zones = self.client.every('/v2/deleted_zones', 'deleted_zones', **page(parsed_args), name=name)
        project = ('project_id',) if self.app.options.all_projects else ()
        return rows(('id', 'name', 'status', 'deleted_at', 'kept_until', *project), zones)


class ZoneHistory(Lister):
    """List who changed a zone, newest first: by what, and how many records.

    Of a deleted zone too, as long as it can be restored; by its id as long as its history is kept. A zone that has
    changed hands shows each project its own time.
    """

    arguments = (ZONE, Argument('--limit', type=positive, metavar='N', default=50,
                                help='how many versions at most, 50 by default'))
    long_columns = ('project_id', 'request_id', 'address', 'client')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        versions = self.client.versions(self.client.any_zone_id(parsed_args.zone), parsed_args.limit)
        more = [name for name in ('approved_by', 'reason', 'address', 'client')
                if any(version.get(name) for version in versions)]
        return rows(('serial', 'when', 'kind', 'user', 'project_id', 'added', 'removed', 'request_id', *more), versions)


class ZoneRevert(_ChangeZone):
    """Give a zone the records that it had, as a new change.

    The changes are shown first, and made when that is agreed to. The zone's own email and TTL stay as they are, and
    so do the records of the pool and of others.
    """

    arguments = (
        ZONE,
        Argument('--to', metavar='SERIAL|TIME', required=True,
                 help='a serial of the zone, or a time such as 2030-01-31T12:00 (UTC) or 2h (ago)'),
        Argument('--name', help='only the recordsets of this name: www, @ for the zone itself, or in full'),
        Argument('--type', type=str.upper, help='only the recordsets of this type'),
        Argument('--yes', action='store_true', help='do not ask'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        path = f'/v2/zones/{zone["id"]}/tasks/revert'
        only = {'name': parsed_args.name and in_zone(parsed_args.name, zone['name']), 'type': parsed_args.type}
        body = {name: value for name, value in only.items() if value}
        plan = self.client.json('POST', path, {**body, 'to': parsed_args.to, 'dry_run': True})
        self.app.stderr.writelines(f'{terminal.sanitized(line)}\n' for line in _reverted(zone['name'], plan))
        if not plan['changes']:
            return _shown(zone)
        if not parsed_args.yes:
            self.app.stderr.write('Make these changes? [y/N] ')
            self.app.stderr.flush()
            if self.app.stdin.readline().strip().lower() not in ('y', 'yes'):
                raise CliError('Nothing was changed; answer y, or give --yes.')
        return self.change_zone(parsed_args, 'POST', path, {**body, 'to': str(plan['to_serial']),
                                                            'serial': plan['serial']})


def _reverted(zone: str, plan: Json) -> Iterator[str]:
    """Lines for what the changes of a revert remove and add, and for what is left as it is."""
    yield (f'{zone} from serial {plan["serial"]} to the contents of {plan["to_serial"]}:'
           f'{"" if plan["changes"] else " nothing to change."}')
    for change in plan['changes']:
        sides = [[f'{change["name"]} {"" if ttl is None else f"{ttl} "}{change["type"]} {record}' for record in records]
                 for ttl, records in ((change['present_ttl'], change['present_records']),
                                      (change['ttl'], change['records']))]
        for sign, lines, others in (('-', *sides), ('+', *sides[::-1])):
            yield from (f'  {sign} {line}' for line in lines if line not in others)
    for entry in plan['unchanged']:
        yield f'  {entry["name"]} {entry["type"]} stays as it is: {entry["why"]}'


class ZoneRestore(_ChangeZone):
    """Restore a deleted zone, with its id, records and shares."""

    arguments = (_DELETED,)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone_id = self.client.deleted_zone_id(parsed_args.zone)
        return self.change_zone(parsed_args, 'POST', f'/v2/deleted_zones/{zone_id}/tasks/restore')


class ZonePurge(ApiCommand):
    """Delete a deleted zone for good, with its records and history."""

    arguments = (_DELETED,)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', f'/v2/deleted_zones/{self.client.deleted_zone_id(parsed_args.zone)}')


def _delete_shares(parsed_args: argparse.Namespace) -> dict[str, str] | None:
    """The header for the option."""
    return {'X-Designate-Delete-Shares': 'true'} if parsed_args.delete_shares else None


SHARE = Resource('shared_zone', '/v2/zones/{id}/shares',
                 ('id', 'zone_id', 'project_id', 'target_project_id', 'created_at'),
                 ('id', 'target_project_id', 'project_id', 'created_at'), name='target_project_id', noun='share')


class _Share(ApiCommand):
    """A command about one share."""

    arguments = (
        ZONE,
        Argument('share', metavar='SHARE', help='its id, the first four or more digits of it, or the id of the '
                                                'project that the zone is shared with'))

    def share(self, parsed_args: argparse.Namespace) -> Json:
        return self.client.find(SHARE, parsed_args.share, self.client.zone(parsed_args.zone))


ZoneShareCreate = _task('shares', 'Share a zone with another project, which may then have recordsets of its own in it.',
                        Argument('target_project_id', metavar='PROJECT', help='id of the project'),
                        show=lambda share: columns(share, SHARE.columns))


class ZoneShareList(_Zone, Lister):
    """List the shares of a zone."""

    arguments = (Argument('--target-project-id', metavar='PROJECT', help='only the share with this project'),)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(SHARE.list_columns, self.client.every(f'{self.path(parsed_args)}/shares', SHARE.key,
                                                          target_project_id=parsed_args.target_project_id))


class ZoneShareShow(_Share, ShowOne):
    """Show a share of a zone."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.share(parsed_args), SHARE.columns)


class ZoneShareDelete(_Share):
    """End a share of a zone; the other project must have no recordsets in it any more."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        share = self.share(parsed_args)
        self.client.send('DELETE', f'/v2/zones/{share["zone_id"]}/shares/{share["id"]}')


_TASK = 'its id, or the first four or more digits of it'
REQUEST = Resource('zone_transfer_request', '/v2/zones/tasks/transfer_requests',
                   ('id', 'zone_id', 'zone_name', 'project_id', 'target_project_id', 'key', 'status', 'description',
                    'created_at', 'updated_at'), ('id', 'zone_id', 'zone_name', 'target_project_id', 'status', 'key'),
                   name='id', noun='transfer request', metavar='REQUEST', help=_TASK)
_ACCEPT_COLUMNS = ('id', 'zone_transfer_request_id', 'zone_id', 'project_id', 'status', 'created_at', 'updated_at')
ACCEPT = Resource('zone_transfer_accept', '/v2/zones/tasks/transfer_accepts', _ACCEPT_COLUMNS, _ACCEPT_COLUMNS,
                  name='id', noun='accepted transfer', metavar='ACCEPT', help=_TASK)


ZoneTransferRequestList = list_command(REQUEST, 'List the transfer requests of a project, and those to it.')
ZoneTransferRequestShow = show_command(REQUEST, 'Show a transfer request.')
ZoneTransferRequestDelete = delete_command(REQUEST, 'Withdraw a transfer request.')


ZoneTransferRequestCreate = _task('tasks/transfer_requests', """Request that another project take over a zone.

    Send the id of the request and its key to somebody of that project.
    """, Argument('--target-project', dest='target_project_id', metavar='PROJECT',
                  help='id of the only project that can accept; any that has the key if not given'),
                              Argument('--description'), show=lambda request: columns(request, REQUEST.columns))
ZoneTransferRequestSet = set_command(REQUEST, 'Change the description of a transfer request.', DESCRIPTION)
ZoneTransferAcceptRequest = create_command(
    ACCEPT, 'Take over a zone by a transfer request and its key.',
    Argument('--transfer-id', dest='zone_transfer_request_id', metavar='REQUEST', required=True,
             help='id of the transfer request'),
    Argument('--key', required=True, help='of the transfer request'))
ZoneTransferAcceptList = list_command(ACCEPT, 'List accepted transfers.')
ZoneTransferAcceptShow = show_command(ACCEPT, 'Show an accepted transfer.')
