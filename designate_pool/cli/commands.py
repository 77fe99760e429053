"""Which words lead to which command: by a table, so that one command does not wait for the imports of all others.

A test holds the lines that are shown in ``--help`` against the commands' own.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Entry:
    """A command that is imported when it is asked for; to cliff it is an entry point.

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
        'zone list': ('zones:ListZones', 'List zones'),
        'zone show': ('zones:ShowZone', 'Show a zone'),
        'zone create': ('zones:CreateZone', 'Create a zone'),
        'zone set': ('zones:SetZone', "Change a zone's email, TTL or description"),
        'zone delete': ('zones:DeleteZone', 'Delete a zone, from the database and from every server'),
        'zone give': ('zones:GiveZones', 'Give zones to a project'),
        'zone explain': ('standing:ExplainZone', 'Tell why a zone is not ACTIVE, or not on every server'),
        'zone servers': ('standing:ListZoneServers', 'List where a zone stands on each server'),
        'zone nameservers': ('pools:ListNameservers', 'List the name servers of a zone'),
        'zone wait': ('standing:WaitForZone', 'Wait until enough servers have a zone at its serial'),
        'zone import': ('transfers:ImportZone', 'Create a zone from a zone file (RFC 1035)'),
        'zone import list': ('transfers:ListImports', 'List the imports of zones'),
        'zone import show': ('transfers:ShowImport', 'Show how far an import is, or why it failed'),
        'zone import delete': ('transfers:DeleteImport', 'Forget an import; the zone that it made stays'),
        'zone export': ('transfers:ExportZone', 'Write a zone as a zone file (RFC 1035)'),
        'zone export list': ('transfers:ListExports', 'List the exports of zones'),
        'zone export show': ('transfers:ShowExport', 'Show an export, and where it can be fetched'),
        'zone export delete': ('transfers:DeleteExport', 'Forget an export'),
    },
    'Recordsets': {
        'recordset list': ('recordsets:ListRecordSets', 'List the recordsets of a zone, or of all zones'),
        'recordset show': ('recordsets:ShowRecordSet', 'Show a recordset'),
        'recordset create': ('recordsets:CreateRecordSet', 'Create a recordset: all records of one name and type'),
        'recordset set': ('recordsets:SetRecordSet', 'Change a recordset: the records given replace those it has'),
        'recordset delete': ('recordsets:DeleteRecordSet', 'Delete a recordset'),
        'recordset servers': ('standing:ListRecordSetServers', 'List which servers serve a recordset as it is now'),
    },
    'The pool': {
        'status': ('status:ShowStatus', 'Show the pool on one screen: servers, zones, services, recent changes'),
        'pool list': ('pools:ListPools', 'List the pools'),
        'pool show': ('pools:ShowPool', 'Show a pool'),
        'pool create': ('pools:CreatePool', 'Create a pool; its servers come from the configuration of its pool '
                                            'managers'),
        'pool set': ('pools:SetPool', 'Change a pool; new name servers give every zone of it a new serial'),
        'pool delete': ('pools:DeletePool', 'Delete a pool that has no zones; stop its programs before'),
        'pool audit': ('pools:ShowAudits', 'Show when all zones of a pool were last looked at on all servers, and what '
                                           'was found'),
        'pool audit findings': ('pools:ListFindings', 'List what audits found lately, the newest first, and what '
                                'was done about it'),
        'server list': ('servers:ListServers', 'List the servers of all pools, or of one'),
        'server show': ('servers:ShowServer', 'Show where a server stands, and some of what fails on it'),
        'server maintenance': ('servers:RestServer', 'Put a server into maintenance: nothing is sent to it and it does '
                                                     'not count, until it is resumed'),
        'server resume': ('servers:ResumeServer', 'Take a server out of maintenance, have one that joins count as it '
                                                  'is, or take a drained one back'),
        'server drain': ('servers:DrainServer', 'Take a server out of the pool, and keep it out though its section is '
                                                'still there'),
        'server resync': ('servers:ResyncServer', 'Compare what a server has with what it should have, and mend it if '
                                                  'told to'),
        'server reload': ('servers:ReloadServers', "Have the pool's configuration read again: new servers join, those "
                                                   'whose section is gone drain'),
        'service list': ('services:ListServices', 'List the programs of designate-pool, and which of them live'),
        'tsigkey list': ('tsigkeys:ListKeys', 'List the TSIG keys that zones can be transferred with'),
        'tsigkey show': ('tsigkeys:ShowKey', 'Show a TSIG key; its secret is not shown'),
        'tsigkey create': ('tsigkeys:CreateKey', 'Create a TSIG key, for a pool or for one zone'),
        'tsigkey set': ('tsigkeys:SetKey', 'Change a TSIG key'),
        'tsigkey delete': ('tsigkeys:DeleteKey', 'Delete a TSIG key'),
    },
    'Projects': {
        'quota show': ('quotas:ShowQuotas', 'Show how much a project may have; -1 is without limit'),
        'quota set': ('quotas:SetQuotas', 'Change how much a project may have; -1 is without limit'),
        'quota unset': ('quotas:UnsetQuotas', 'Have a project have the quotas of the configuration again'),
        'limits': ('quotas:ShowLimits', 'Show what the API takes'),
    },
    'Zones that are kept in files': {
        'plan': ('planning:MakePlan', 'Show what would change so that zones are as their sources have them, and keep '
                                      'that plan to be applied'),
        'plan list': ('plans:ListPlans', "List the plans that are kept, the newest first: an operator's, and those "
                                         'that pool managers have parked'),
        'plan show': ('plans:ShowPlan', 'Show a plan that is kept: all that it would change, and why it waits'),
        'plan drop': ('plans:DropPlan', 'Forget a plan: it is not applied any more.  A parked one is made anew if it '
                                        'is still needed'),
        'apply': ('planning:ApplyPlan', 'Make exactly the changes of a plan, or with --yes plan and apply in one go'),
        'compare': ('dumping:CompareZones', 'Show what would have to change in B so that a zone is there as it is in '
                                            'A'),
        'dump': ('dumping:DumpZones', 'Write zones into files, as their sources and processors make them: one file for '
                                      'each zone'),
        'report': ('reporting:ReportZone', "Ask every server of the zone's pool over DNS for all that the pool holds, "
                                           'and show where answers differ'),
        'validate': ('dumping:Validate', 'Read the configuration and every zone from its sources, and tell every '
                                         'mistake; nothing is planned'),
    },
    'The command itself': {
        'complete': ('completing:Complete', 'Print what a shell needs to complete the command'),
        'help': ('app:Help', 'Show the help of a command'),
    },
}

#: By heading.
GROUPS: Mapping[str, tuple[Entry, ...]] = {
    heading: tuple(Entry(name, value, summary) for name, (value, summary) in found.items())
    for heading, found in _GROUPS.items()
}
COMMANDS: Mapping[str, Entry] = {entry.name: entry for group in GROUPS.values() for entry in group}
