"""The commands by name; each is imported only when it is run.

A test compares the summaries with the docstrings of the commands.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class CommandEntry:
    """A command that is imported when it is needed; to cliff it is an entry point.

    :ivar value: ``module:class`` below :mod:`designate_pool.cli`
    :ivar summary: the first line of its help
    """

    name: str
    value: str
    summary: str

    def load(self) -> Any:
        module, _, name = self.value.partition(':')
        return getattr(importlib.import_module(f'designate_pool.cli.{module}'), name)


_GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    'Zones': {
        'zone list': ('commands.zones.zones:ListZones', 'List zones'),
        'zone show': ('commands.zones.zones:ShowZone', 'Show a zone'),
        'zone create': ('commands.zones.zones:CreateZone', 'Create a zone'),
        'zone set': ('commands.zones.zones:SetZone',
                     "Change a zone's email, TTL or description, or the masters of a secondary zone"),
        'zone delete': ('commands.zones.zones:DeleteZone', 'Delete a zone, from the database and from every server'),
        'zone refresh': ('commands.zones.zones:RefreshZone', 'Refresh a secondary zone from its masters now'),
        'zone move': ('commands.zones.zones:MoveZone', 'Move a zone to another pool'),
        'zone adopt': ('commands.zones.adopt:AdoptZones',
                       'Take over zones that a name server has already, or list them'),
        'zone abandon': ('commands.zones.zones:AbandonZone', 'Delete a zone here and leave it on its servers'),
        'zone give': ('commands.zones.zones:GiveZones', 'Give zones to a project'),
        'zone explain': ('commands.zones.zone_status:ExplainZone',
                         'Explain why a zone is not ACTIVE, or not on every server'),
        'zone servers': ('commands.zones.zone_status:ListZoneServers', 'List the state of a zone on each server'),
        'zone nameservers': ('commands.pools.pools:ListNameservers', 'List the name servers of a zone'),
        'zone wait': ('commands.zones.zone_status:WaitForZone', 'Wait until enough servers serve a zone at its serial'),
        'zone import': ('commands.zones.zone_files:ImportZone', 'Create a zone from a zone file (RFC 1035)'),
        'zone import batch': ('commands.zones.zone_files:ImportZones', 'Create zones from many zone files'),
        'zone import list': ('commands.zones.zone_files:ListImports', 'List the imports of zones'),
        'zone import show': ('commands.zones.zone_files:ShowImport', 'Show the state of an import, or why it failed'),
        'zone import delete': ('commands.zones.zone_files:DeleteImport',
                               'Forget an import; the zone that it made stays'),
        'zone export': ('commands.zones.zone_files:ExportZone', 'Write a zone as a zone file (RFC 1035)'),
        'zone export list': ('commands.zones.zone_files:ListExports', 'List the exports of zones'),
        'zone export show': ('commands.zones.zone_files:ShowExport', 'Show an export, and where it can be fetched'),
        'zone export delete': ('commands.zones.zone_files:DeleteExport', 'Forget an export'),
        'zone share list': ('commands.zones.zone_owners:ListShares', 'List the shares of a zone'),
        'zone share show': ('commands.zones.zone_owners:ShowShare', 'Show a share of a zone'),
        'zone share create': ('commands.zones.zone_owners:CreateShare',
                              'Share a zone with another project, which may then have recordsets of its own in it'),
        'zone share delete': ('commands.zones.zone_owners:DeleteShare',
                              'End a share of a zone; the other project must have no recordsets in it any more'),
        'zone transfer request list': ('commands.zones.zone_owners:ListTransferRequests',
                                       'List the transfer requests of a project, and those to it'),
        'zone transfer request show': ('commands.zones.zone_owners:ShowTransferRequest', 'Show a transfer request'),
        'zone transfer request create': ('commands.zones.zone_owners:CreateTransferRequest',
                                         'Request that another project take over a zone'),
        'zone transfer request set': ('commands.zones.zone_owners:SetTransferRequest',
                                      'Change the description of a transfer request'),
        'zone transfer request delete': ('commands.zones.zone_owners:DeleteTransferRequest',
                                         'Withdraw a transfer request'),
        'zone transfer accept request': ('commands.zones.zone_owners:AcceptTransferRequest',
                                         'Take over a zone by a transfer request and its key'),
        'zone transfer accept list': ('commands.zones.zone_owners:ListTransferAccepts', 'List accepted transfers'),
        'zone transfer accept show': ('commands.zones.zone_owners:ShowTransferAccept',
                                      'Show an accepted transfer'),
    },
    'Recordsets': {
        'recordset list': ('commands.zones.recordsets:ListRecordSets',
                           'List the recordsets of a zone, or of all zones'),
        'recordset show': ('commands.zones.recordsets:ShowRecordSet', 'Show a recordset'),
        'recordset create': ('commands.zones.recordsets:CreateRecordSet',
                             'Create a recordset: all records of one name and type'),
        'recordset set': ('commands.zones.recordsets:SetRecordSet',
                          'Change a recordset: the records given replace those it has'),
        'recordset delete': ('commands.zones.recordsets:DeleteRecordSet', 'Delete a recordset'),
        'recordset servers': ('commands.zones.zone_status:ListRecordSetServers',
                              'List which servers serve a recordset as it is now'),
    },
    'Floating IPs': {
        'ptr record list': ('commands.zones.recordsets:ListPtrRecords',
                            'List the floating IPs of a project with their PTR records'),
        'ptr record show': ('commands.zones.recordsets:ShowPtrRecord', 'Show a floating IP with its PTR record'),
        'ptr record set': ('commands.zones.recordsets:SetPtrRecord',
                           'Set the PTR record of a floating IP; without --ttl it has that of its zone'),
        'ptr record unset': ('commands.zones.recordsets:UnsetPtrRecord', 'Delete the PTR record of a floating IP'),
    },
    'The pool': {
        'status': ('commands.pools.status:ShowStatus',
                   'Show the pool on one screen: servers, zones, services, recent changes'),
        'pool list': ('commands.pools.pools:ListPools', 'List the pools'),
        'pool show': ('commands.pools.pools:ShowPool', 'Show a pool'),
        'pool create': ('commands.pools.pools:CreatePool',
                        'Create a pool; its servers come from the configuration of its pool '
                        'managers'),
        'pool set': ('commands.pools.pools:SetPool',
                     'Change a pool; new name servers give every zone of it a new serial'),
        'pool delete': ('commands.pools.pools:DeletePool', 'Delete a pool that has no zones; stop its programs before'),
        'pool audit': ('commands.pools.pools:ShowAudits',
                       'Show when all zones of a pool were last audited on all servers, and what was found'),
        'pool audit findings': ('commands.pools.pools:ListFindings',
                                'List what audits found lately, the newest first, and how it was repaired'),
        'server list': ('commands.pools.servers:ListServers', 'List the servers of all pools, or of one'),
        'server show': ('commands.pools.servers:ShowServer',
                        'Show a server with its state and some of the operations that fail on it'),
        'server maintenance': ('commands.pools.servers:StartMaintenance',
                               'Put a server into maintenance: nothing is sent to it and it does '
                               'not count, until it is resumed'),
        'server resume': ('commands.pools.servers:ResumeServer',
                          'Take a server out of maintenance, let a joining one count at once, or take a drained one '
                          'back'),
        'server drain': ('commands.pools.servers:DrainServer',
                         'Drain a server: take it out of the pool, and keep it out though its section is still there'),
        'server resync': ('commands.pools.servers:ResyncServer',
                          'Compare what a server has with what it should have, and repair it with --fix'),
        'server reload': ('commands.pools.servers:ReloadServers',
                          "Read the pool's configuration again: new servers join, those without a section are drained"),
        'service list': ('commands.pools.status:ListServices',
                         'List the programs of designate-pool, and which of them are running'),
        'tsigkey list': ('commands.pools.tsigkeys:ListKeys', 'List the TSIG keys that zones can be transferred with'),
        'tsigkey show': ('commands.pools.tsigkeys:ShowKey', 'Show a TSIG key; its secret is not shown'),
        'tsigkey create': ('commands.pools.tsigkeys:CreateKey', 'Create a TSIG key, for a pool or for one zone'),
        'tsigkey set': ('commands.pools.tsigkeys:SetKey', 'Change a TSIG key'),
        'tsigkey delete': ('commands.pools.tsigkeys:DeleteKey', 'Delete a TSIG key'),
    },
    'Names that zones may have': {
        'tld list': ('commands.pools.name_rules:ListTlds', 'List the top-level domains that zones may lie below'),
        'tld show': ('commands.pools.name_rules:ShowTld', 'Show a top-level domain'),
        'tld create': ('commands.pools.name_rules:CreateTld',
                       'Add a top-level domain; with the first, every new zone lies below one of them'),
        'tld set': ('commands.pools.name_rules:SetTld', 'Change a top-level domain'),
        'tld delete': ('commands.pools.name_rules:DeleteTld', 'Remove a top-level domain; the zones below it stay'),
        'zone blacklist list': ('commands.pools.name_rules:ListBlacklists',
                                'List the patterns of names that zones may not have'),
        'zone blacklist show': ('commands.pools.name_rules:ShowBlacklist',
                                'Show a pattern of names that zones may not have'),
        'zone blacklist create': ('commands.pools.name_rules:CreateBlacklist',
                                  'Add a pattern of names that zones may not have'),
        'zone blacklist set': ('commands.pools.name_rules:SetBlacklist',
                               'Change a pattern of names that zones may not have'),
        'zone blacklist delete': ('commands.pools.name_rules:DeleteBlacklist',
                                  'Remove a pattern of names that zones may not have'),
    },
    'Projects': {
        'quota show': ('commands.pools.quotas:ShowQuotas', 'Show the quotas of a project; -1 is without limit'),
        'quota set': ('commands.pools.quotas:SetQuotas', 'Change the quotas of a project; -1 is without limit'),
        'quota unset': ('commands.pools.quotas:UnsetQuotas',
                        'Reset the quotas of a project to those of the configuration'),
        'limits': ('commands.pools.quotas:ShowLimits', 'Show the limits of the API'),
    },
    'Zones that are kept in files': {
        'plan': ('commands.sources.plan_apply:MakePlan',
                 "Show what has to change so that zones match their sources, and store that plan for 'apply'"),
        'plan list': ('commands.sources.plans:ListPlans',
                      'List the stored plans, the newest first: those of operators, and those that pool managers have '
                      'parked'),
        'plan show': ('commands.sources.plans:ShowPlan',
                      'Show a stored plan: all that it would change, and why it waits'),
        'plan drop': ('commands.sources.plans:DropPlan',
                      'Drop a plan: it is not applied any more.  A parked one is made again if it is still needed'),
        'apply': ('commands.sources.plan_apply:ApplyPlan',
                  'Apply exactly the changes of a plan, or with --yes plan and apply in one go'),
        'compare': ('commands.sources.sources:CompareZones',
                    'Show what has to change in B so that a zone is the same in A and B'),
        'dump': ('commands.sources.sources:DumpZones',
                 'Write zones into files, as their sources and processors give them: one file for each zone'),
        'report': ('commands.sources.report:ReportZone',
                   "Ask every server of a zone's pool over DNS for all records of the zone, and show where answers "
                   "differ"),
        'validate': ('commands.sources.sources:Validate',
                     'Check the configuration, and every zone as its sources have it; nothing is planned'),
    },
    'The command itself': {
        'complete': ('args.completion:Complete', 'Print what a shell needs to complete the command'),
        'help': ('app:Help', 'Show the help of a command'),
    },
}

#: By heading.
GROUPS: Mapping[str, tuple[CommandEntry, ...]] = {
    heading: tuple(CommandEntry(name, value, summary) for name, (value, summary) in entries.items())
    for heading, entries in _GROUPS.items()
}
COMMANDS: Mapping[str, CommandEntry] = {entry.name: entry for group in GROUPS.values() for entry in group}
