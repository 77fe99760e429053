"""The commands by name; each is imported only when it is run, or for the help of all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint

#: Packages beside ours may add commands under this group of entry points.
NAMESPACE = 'designate_pool.cli'
#: By heading: modules, each with its commands.  The class of ``zone list`` is ``ZoneList``, of ``plan`` PlanCommand.
_TABLE: Mapping[str, Sequence[Sequence[str]]] = {
    'Zones': (
        ('zones', 'zone list', 'zone show', 'zone create', 'zone set', 'zone delete', 'zone refresh', 'zone move'),
        ('adopt', 'zone adopt'),
        ('zones', 'zone abandon', 'zone lock', 'zone unlock', 'zone unfreeze', 'zone dnssec enable',
         'zone dnssec disable', 'zone dnssec show', 'zone dnssec keys', 'zone dnssec ds', 'zone dnssec roll',
         'zone dnssec confirm-ds', 'zone dnssec skip-server', 'zone release show', 'zone release continue',
         'zone release abort', 'zone deleted', 'zone history'),
        ('zone_diff', 'zone diff'),
        ('zones', 'zone revert'),
        ('plans', 'zone changes', 'zone changes show', 'zone changes approve', 'zone changes refuse'),
        ('zones', 'zone restore', 'zone purge', 'zone give'),
        ('zone_status', 'zone explain'),
        ('zone_files', 'zone validate'),
        ('zone_status', 'zone servers'),
        ('pools', 'zone nameservers'),
        ('zone_status', 'zone wait'),
        ('zone_files', 'zone import', 'zone import batch', 'zone import list', 'zone import show',
         'zone import delete', 'zone export', 'zone export list', 'zone export show', 'zone export delete'),
        ('zones', 'zone share list', 'zone share show', 'zone share create', 'zone share delete',
         'zone transfer request list', 'zone transfer request show', 'zone transfer request create',
         'zone transfer request set', 'zone transfer request delete', 'zone transfer accept request',
         'zone transfer accept list', 'zone transfer accept show'),
    ),
    'Recordsets': (
        ('recordsets', 'recordset list', 'recordset show', 'recordset history', 'recordset create', 'recordset set',
         'recordset delete', 'recordset lock', 'recordset unlock'),
        ('zone_status', 'recordset servers'),
    ),
    'Floating IPs': (
        ('recordsets', 'ptr record list', 'ptr record show', 'ptr record set', 'ptr record unset'),
    ),
    'The pool': (
        ('status', 'status'),
        ('pools', 'pool list', 'pool show', 'pool create', 'pool set', 'pool delete', 'pool freeze', 'pool unfreeze',
         'pool audit', 'pool audit findings'),
        ('servers', 'server list', 'server show', 'server maintenance', 'server resume', 'server drain',
         'server resync', 'server reload'),
        ('status', 'service list', 'service delete'),
        ('admin', 'tsigkey list', 'tsigkey show', 'tsigkey create', 'tsigkey set', 'tsigkey delete'),
    ),
    'Names that zones may have': (
        ('admin', 'tld list', 'tld show', 'tld create', 'tld set', 'tld delete', 'zone blacklist list',
         'zone blacklist show', 'zone blacklist create', 'zone blacklist set', 'zone blacklist delete'),
    ),
    'Projects': (
        ('admin', 'quota show', 'quota set', 'quota unset', 'limits'),
    ),
    'Zones that are kept in files': (
        ('plan_apply', 'plan'),
        ('plans', 'plan list', 'plan show', 'plan drop'),
        ('plan_apply', 'apply'),
        ('sources', 'compare', 'dump'),
        ('report', 'report'),
        ('sources', 'validate'),
    ),
    'The command itself': (
        ('app', 'complete', 'help'),
    ),
}


def _entry_point(module: str, name: str) -> EntryPoint:
    place = module if module == 'app' else f'commands.{module}'
    words = re.split('[ -]', name if ' ' in name else f'{name} command')
    return EntryPoint(name, f'{NAMESPACE}.{place}:{"".join(map(str.capitalize, words))}', NAMESPACE)


GROUPS: Mapping[str, Mapping[str, EntryPoint]] = {
    heading: {name: _entry_point(module, name) for module, *names in modules for name in names}
    for heading, modules in _TABLE.items()}
COMMANDS: Mapping[str, EntryPoint] = {name: entry for group in GROUPS.values() for name, entry in group.items()}
