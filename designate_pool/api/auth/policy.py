"""Authorisation by oslo.policy, with a documented default rule for every operation.

A policy file overrides single rules; it is read again when it has changed.
"""

from __future__ import annotations

import functools
import importlib.metadata
import logging
import os
import re
from collections.abc import Callable
from typing import Any, Protocol

from oslo_policy import policy as oslo

from designate_pool.api import operation_registry
from designate_pool.api.auth.identity import CHANGE_ALL_PROJECTS, Identity
from designate_pool.api.auth.reloaded_file import ReloadedFile, file_stamp
from designate_pool.api.schema.operation import (ADMIN, ANYONE, CREATE_IN_POOL, IS_ADMIN, LOCK_AS_ADMIN, MEMBER,
                                                 OPERATOR, READER, USE_BLACKLISTED)
from designate_pool.errors import BadConfiguration

LOG = logging.getLogger(__name__)
#: Whether a rule allows something to the roles, project and user.
Decide = Callable[[str, tuple[str, ...], str, str], bool]

ALL_PROJECTS = 'all_projects'
IS_READER = 'is_reader'
USE_SUDO = 'use_sudo'
NEST_ZONES = 'nest_zones'
EDIT_MANAGED_RECORDS = 'edit_managed_records'
HARD_DELETE = 'hard_delete'
#: The rule that a role and those above it fulfil.
_RULES = {ANYONE: '@', READER: f'rule:{IS_READER}', MEMBER: 'rule:is_member', OPERATOR: 'rule:is_operator',
          ADMIN: f'rule:{IS_ADMIN}'}
#: Seconds between two checks of the files.
CHECK_INTERVAL = 1.0
#: Decisions that are kept.
_MOST_DECISIONS = 4096


class Rules(Protocol):
    """Decides who may do what."""

    def allow(self, rule: str, identity: Identity) -> bool:
        """Whether *identity* may do what *rule* is about; False for an unknown rule."""


class AllowAll(Rules):
    """Everybody may do everything: without a policy."""

    def allow(self, rule: str, identity: Identity) -> bool:
        return True


def list_rules() -> list[oslo.RuleDefault]:
    """Every rule with its default, for the generator of the sample (entry point ``oslo.policy.policies``)."""
    roles = [
        oslo.RuleDefault('is_admin', 'role:admin', 'Administrators: may do everything.'),
        oslo.RuleDefault('is_operator', 'rule:is_admin or role:operator',
                         'Operators: see all of the pool, and command its servers.'),
        oslo.RuleDefault('is_member', 'rule:is_operator or role:member',
                         'Members: change the zones of a project.'),
        oslo.RuleDefault(IS_READER, 'rule:is_member or role:reader',
                         'Readers: see the zones of a project.'),
    ]
    headers = [
        _documented(ALL_PROJECTS, OPERATOR, 'See the zones of all projects: X-Auth-All-Projects: true', 'GET'),
        _documented(CHANGE_ALL_PROJECTS, ADMIN, 'Change the zones of any project: X-Auth-All-Projects: true', 'POST',
                    'PUT', 'PATCH', 'DELETE'),
        _documented(NEST_ZONES, ADMIN, 'Create zones above or below those of other projects, of one label, or at the '
                    'name of a name server: X-Auth-All-Projects: true', 'POST'),
        _documented(EDIT_MANAGED_RECORDS, ADMIN, 'Send X-Designate-Edit-Managed-Records: true', 'POST', 'PUT', 'PATCH',
                    'DELETE'),
        _documented(HARD_DELETE, ADMIN, 'Send X-Designate-Hard-Delete: true', 'POST', 'PUT', 'PATCH', 'DELETE'),
        _documented(USE_SUDO, ADMIN, 'Act for another project: X-Auth-Sudo-Project-ID', 'GET', 'POST', 'PUT',
                    'PATCH', 'DELETE'),
    ]
    creating = [
        oslo.DocumentedRuleDefault(name, _RULES[ADMIN], summary, [
            {'path': path, 'method': 'POST'}
            for path in ('/v2/zones', '/v2/zones/tasks/imports', '/v2/zones/tasks/import_batches')])
        for name, summary in ((CREATE_IN_POOL, 'Choose the pool of a new zone'),
                              (USE_BLACKLISTED, 'Create a zone whose name is in the blacklists'))]
    locking = oslo.DocumentedRuleDefault(
        LOCK_AS_ADMIN, _RULES[ADMIN], 'Lock zones and recordsets so that only those who may do this unlock them',
        [{'path': f'/v2/zones/{{zone_id}}{path}/tasks/{verb}', 'method': 'POST'}
         for path in ('', '/recordsets/{recordset_id}') for verb in ('lock', 'unlock')])
    return [*roles, *headers, *creating, locking, *(
        oslo.DocumentedRuleDefault(operation.name, operation.default_rule or _RULES[operation.role], operation.summary,
                                   [{'path': operation.path, 'method': operation.method}])
        for operation in operation_registry.operations())]


def make_enforcer(conf: Any) -> oslo.Enforcer:
    """oslo.policy's own object, with our defaults and nothing read yet.

    :param conf: oslo.config's object; the options of ``[oslo_policy]`` become known to it
    """
    enforcer = oslo.Enforcer(conf)
    enforcer.register_defaults(list_rules())
    return enforcer


class OsloPolicy(Rules):
    """Our defaults with the operator's policy file over them.

    :param conf: as for :func:`make_enforcer`
    :raises BadConfiguration: when the policy file is wrong
    """

    def __init__(self, conf: Any) -> None:
        self._conf = conf
        make_enforcer(conf)  # the options have to be known before the stamps are taken
        self._decide: ReloadedFile[Decide] = ReloadedFile('policy file', self._read, self._file_stamps, CHECK_INTERVAL)

    def allow(self, rule: str, identity: Identity) -> bool:
        return self._decide.get()(rule, identity.roles, identity.project, identity.user)

    def reload(self) -> None:
        """Read the policy file again now."""
        self._decide.reload()

    def _read(self) -> Decide:
        enforcer = make_enforcer(self._conf)
        try:
            enforcer.load_rules(force_reload=True)
            enforcer.check_rules(raise_on_violation=True)
        except oslo.InvalidDefinitionError as error:
            raise _wrong(f'{self._conf.oslo_policy.policy_file}: {error}') from None
        except Exception as error:  # of the YAML parser, the file system or oslo.policy
            raise _wrong(f'{self._conf.oslo_policy.policy_file}: it cannot be read as a policy '
                         f'({" ".join(str(error).split())})') from None
        _refuse_unreadable(enforcer, self._conf.oslo_policy.policy_file)
        _warn_of_unknown(enforcer)
        # From here on we check whether the file has changed: a wrong file that oslo.policy read itself would fail the
        # request that made it read.
        enforcer.use_conf = False
        return _with_kept_decisions(enforcer)

    def _file_stamps(self) -> tuple[Any, ...]:
        """What changes when one of the files changes."""
        options = self._conf.oslo_policy
        paths = [self._conf.find_file(path) for path in (options.policy_file, *options.policy_dirs)]
        folders = [path for path in paths if path and os.path.isdir(path)]
        paths.extend(os.path.join(folder, name) for folder in folders for name in sorted(os.listdir(folder)))
        return tuple((path, file_stamp(path)) for path in paths if path)


def _with_kept_decisions(enforcer: oslo.Enforcer) -> Decide:
    """What an enforcer decides: it takes 0.1 ms for a decision, since it inspects every check of a rule each time.

    Decisions are kept, except where a check of an extension is part of a rule: ``http:`` asks another server.
    """
    def decide(rule: str, roles: tuple[str, ...], project: str, user: str) -> bool:
        creds = {'roles': list(roles), 'project_id': project, 'user_id': user}
        return bool(enforcer.enforce(rule, {'project_id': project}, creds))

    kinds = '|'.join(map(re.escape, importlib.metadata.entry_points(group='oslo.policy.rule_checks').names))
    asks_others = kinds and any(re.search(rf'(?:^|[\s(])(?:{kinds}):', str(check)) for check in enforcer.rules.values())
    return decide if asks_others else functools.lru_cache(_MOST_DECISIONS)(decide)


def check_policy_file(conf: Any) -> None:
    """Raise BadConfiguration when the configured policy file does not exist: oslo.policy would ignore that."""
    named = conf.oslo_policy.policy_file
    if conf.get_location('policy_file', 'oslo_policy').location.is_user_controlled and not conf.find_file(named):
        raise _wrong(f'there is no file {named}')


def _refuse_unreadable(enforcer: oslo.Enforcer, path: str) -> None:
    """Refuse a file with rules that cannot be parsed; oslo.policy would read them as "nobody"."""
    wrong = [name for name, rule in enforcer.file_rules.items()
             if str(enforcer.rules[name]) == '!' and rule.check_str.strip() != '!']
    if wrong:
        raise _wrong(f'{path}: these rules cannot be understood: {", ".join(sorted(wrong))}')


def _warn_of_unknown(enforcer: oslo.Enforcer) -> None:
    """A rule of the file that is not ours and that no other rule uses has no effect: probably a typing error."""
    used = ' '.join(str(check) for check in enforcer.rules.values())
    for name in enforcer.file_rules:
        is_known = name in enforcer.registered_rules or name == enforcer.default_rule
        if not is_known and f'rule:{name}' not in used:
            LOG.warning('the policy file has a rule %s that no operation uses; check its name', name)


def _wrong(why: str) -> BadConfiguration:
    return BadConfiguration(count=1, listing=f'\n  [oslo_policy] policy_file: {why}')


def _documented(name: str, role: str, description: str, *methods: str) -> oslo.DocumentedRuleDefault:
    return oslo.DocumentedRuleDefault(name, _RULES[role], description,
                                      [{'path': '/v2/', 'method': method} for method in methods])
