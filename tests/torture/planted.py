"""Bugs that are planted in the programs on purpose, to see whether the kit finds them.

Each is a change of the text of some modules, by name, and is found within :data:`SEEDS` seeds of the self-test.  The
programs know nothing of it: their environment has ``TORTURE_PLANT``, the bug's name, and a ``PYTHONPATH`` with a
``sitecustomize`` that has the modules read with the change (:func:`install`).  This module imports nothing of ours, for
it is run before the programs begin.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import CodeType, ModuleType
from typing import NamedTuple

VARIABLE = 'TORTURE_PLANT'
#: Within so many seeds each bug is found.
SEEDS = 4
#: Without it, zones that a deletion leaves behind stay.
_NO_AUDIT = {'extra_zones_interval': '0'}
_HERE = pathlib.Path(__file__).resolve().parent
_PACKAGE = 'designate_pool.'


class Change(NamedTuple):
    """
    :ivar module: after ``designate_pool.``
    :ivar old: text that is there once
    """

    module: str
    old: str
    new: str


class Plant(NamedTuple):
    """A bug.

    :ivar rules: of the checker, one of which it breaks
    :ivar manager: options of the lab's pool managers without which they mend it in time
    :ivar fault: of the lab, that brings about the situation in which it shows, so that this comes early and often
    :ivar words: more of the command line of a run, without which there is no such situation
    """

    what: str
    rules: tuple[str, ...]
    changes: tuple[Change, ...]
    manager: Mapping[str, str] = {}
    fault: str = ''
    words: tuple[str, ...] = ()


#: Rows that are due or claimed are not kept.
PURGE_ANY_ROW = (
    Change('pool_manager.reconcile.reconciler',
           'row.next_attempt_at is not None and row.server_id in (*servers, *uncounted)', 'False'),
    Change('storage.operations.server_statuses',
           "_IS_DUE == 0, _unclaimed(sa.bindparam('now')),\n", '\n'))

PLANTS = {
    'claims_never_end': Plant(
        'what a killed pool manager had claimed stays claimed', ('healed', 'leftover'), (
            Change('pool_manager.reconcile.row_transitions',
                   'return row.claimed_until is not None and row.claimed_until > now',
                   'return row.claimed_until is not None'),
            Change('storage.operations.server_statuses',
                   'return TABLE.c.claimed_until.is_(None) | (TABLE.c.claimed_until < now)',
                   'return TABLE.c.claimed_until.is_(None)'))),
    'silence_is_absence': Plant(
        'a deletion that fails counts as done', ('deleted', 'healed'), (
            Change('pool_manager.reconcile.row_transitions', '    if result.ok:\n        return _succeeded',
                   '    if result.ok or row.action is Action.DELETE:\n        return _succeeded'),),
        manager=_NO_AUDIT, fault='miss_deletions'),
    'count_the_newest': Plant(
        'a change is ACTIVE when one server serves it', ('active',), (
            Change('consensus', 'distances[k - 1]) % SPACE if len(distances) >= k',
                   'distances[0]) % SPACE if distances'),)),
    'count_a_stale_serial': Plant(
        'a server that answers with an older serial counts as if it served the newest', ('active',), (
            Change('consensus', '    return row.serial_number\n', '    return domain.serial\n'),)),
    'report_is_active': Plant(
        'a zone is ACTIVE at its newest serial when any serial was reported', ('active',), (
            Change('central.rules.status', 'is_current = at_least(serial, domain.least_serial)',
                   'is_current = True'),)),
    'lose_cast_without_due_row': Plant(
        'casts are lost, and nobody looks for changes in the database', ('healed',), (
            Change('central.cast_queue', '            try:\n                if len(changes) == 1 and',
                   '            try:\n                if len(changes[0][1].name) % 2 == 0:\n'
                   '                    continue\n'
                   '                if len(changes) == 1 and'),
            Change('pool_manager.periodic.loops',
                   '        self._manager.queue_changes(domain.id for domain in domains)\n', ''))),
    'purge_too_early': Plant(
        'a deletion is over when enough servers have dropped the zone', ('healed',), (
            Change('consensus', '    behind = tuple(server for server in servers if server not in done)\n',
                   '    behind = tuple(server for server in servers if server not in done)\n'
                   '    if domain.is_going and len(agreed) >= k:\n        behind = ()\n'), *PURGE_ANY_ROW),
        manager=_NO_AUDIT, fault='miss_deletions'),
    'gone_at_once': Plant(
        'a zone is gone for users before any server has dropped it', ('deleted',), (
            Change('consensus', 'Outcome.SUCCESS if len(agreed) >= k else', 'Outcome.SUCCESS if True else'),)),
    'serials_begin_anew': Plant(
        'the next zone of a name does not begin above the former', ('serials',), (
            Change('central.rules.domains', 'serial = first_serial(last_serial, wanted.lowest_serial, time.time())',
                   'serial = first_serial(None, wanted.lowest_serial, time.time() - 3600)'),)),
    'deleted_records_stay': Plant(
        'records that are being deleted are still transferred', ('lost', 'equal', 'healed'), (
            Change('storage.serving.zone_snapshot',
                   '.where(domain, IS_PRESENT,', '.where(domain, records.c.status != Status.DELETED,'
                   ),)),
    'journal_forgets_removals': Plant(
        'an incremental transfer leaves out what was removed', ('lost', 'equal'), (
            Change('central.rules.journal', 'written[entry.domain.id] = gone, added',
                   'written[entry.domain.id] = [], added'),)),
    'commit_is_lost': Plant(
        'one acknowledged change in some is rolled back', ('lost', 'healed'), (
            Change('central.recordset_changes', 'for change in changes if change.edits.contents]',
                   'for change in changes if change.edits.contents and now.microsecond % 10]'),)),
    'lost_zone_is_forgotten': Plant(
        'a server that has lost a zone is not given it again', ('healed',), (
            Change('pool_manager.reconcile.outcomes',
                   'has_lost_zone = result.status is Outcome.ERROR and result.answer is Answer.NO_ZONE',
                   'has_lost_zone = False'),)),
    'late_delete_wins': Plant(
        'the deletion of a former zone is carried out after its name is used again',
        ('active', 'healed', 'lost'), (
            Change('pool_manager.reconcile.domain_state',
                   'if newer is not None and newer.generation > state.domain.generation:', 'if False:'),
            Change('pool_manager.reconcile.outcomes', 'if self.step.live:\n            self._recreate(outcomes)',
                   'pass'))),
    'freeze_holds_nothing': Plant(
        'servers of a frozen pool get changes at once', ('frozen',), (
            Change('model.freezes', "return {} if domain.held_by == freeze.id else {'held_by'",
                   "return {} if True else {'held_by'"),),
        fault='freeze'),
    'one_stage_for_all': Plant(
        'servers of all stages get a change with the canaries', ('staged',), (
            Change('model.freezes', 'result.setdefault(server.id, number)', 'result.setdefault(server.id, 1)'),),
        fault='stage'),
    'tenants_see_all': Plant(
        'whoever knows the id of a zone may see and change it', ('tenants',), (
            Change('model.domains', "return self.all_projects or project_id != '' and project_id == self.project_id",
                   'return True'),)),
    'nested_for_all': Plant(
        'zones may lie below those of another tenant', ('tenants',), (
            Change('central.rules.name_ownership',
                   'if any(neighbour.project_id not in (project_id, *others) for neighbour in neighbours):',
                   'if False:'),)),
    'former_records_come_back': Plant(
        'a new zone has MX records of the former one of its name', ('former',), (
            Change('central.domain_creator',
                   '    name_ownership.recheck_name_and_records(tx, context, domain.name,',
                   '    for table, condition in () if last is None else (\n'
                   '            (\'recordsets\', "type = \'MX\' AND name NOT IN (SELECT name FROM recordsets "\n'
                   '             "WHERE domain_id = :new)"),\n'
                   '            (\'records\', "recordset_id IN (SELECT id FROM recordsets WHERE domain_id = :new)")):\n'
                   '        import sqlalchemy\n'
                   '        text = f"UPDATE {table} SET domain_id = :new WHERE domain_id = :old AND {condition}"\n'
                   '        tx.execute(sqlalchemy.text(text), {"new": domain.id, "old": last.id}).close()\n'
                   '    name_ownership.recheck_name_and_records(tx, context, domain.name,'),)),
    'a_taken_name_is_given': Plant(
        'whoever creates a zone that is there already is told that it was created', ('twice',), (
            Change('central.domain_creator', '        raise (DuplicateDomain if',
                   '        if context.sees(last.project_id):\n'
                   '            return domains.get_many(tx, [last.id])[last.id]\n'
                   '        raise (DuplicateDomain if'),)),
    'all_records_are_ours': Plant(
        'what others wrote on a server that is fed by records is deleted', ('foreign',), (
            Change('pool_manager.dispatch.record_sync',
                   'if self._registry is not None:\n            processors.append(',
                   'if False:\n            processors.append('),),
        fault='write_foreign', words=('--servers', 'bind1,knot1,native1')),
    'texts_are_not_signed': Plant(
        'signatures of TXT records are left out after they were verified', ('valid',), (
            Change('central.signing.zone_signer', '    return change\n\n',
                   "    return change._replace(added=[each for each in change.added if each.covered != 'TXT'])\n\n"),),
        words=('--signing',)),
}


def environment(name: str) -> dict[str, str]:
    """What programs need in their environment to have the bug; they must be executed, not forked."""
    assert name in PLANTS, name
    paths = [str(_HERE / 'planting'), *filter(None, [os.environ.get('PYTHONPATH')])]
    return {VARIABLE: name, 'PYTHONPATH': os.pathsep.join(paths)}


def breaches(name: str, found: Iterable[object]) -> list[str]:
    """Those of the checker's breaches, as text, by which the bug shows."""
    return [str(each) for each in found if str(each).partition(':')[0] in PLANTS[name].rules]


def changed(name: str, module: str, source: str) -> str:
    """The text of a module with the bug in it.

    :raises AssertionError: when the text that is to be changed is not there, or more than once
    """
    for change in PLANTS[name].changes:
        if _PACKAGE + change.module == module:
            assert source.count(change.old) == 1, f'{name}: {source.count(change.old)} times in {module}: {change.old}'
            source = source.replace(change.old, change.new)
    return source


class _Loader(importlib.machinery.SourceFileLoader):
    """Reads a module with the bug; what is compiled is not kept."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = importlib.util.decode_source(self.get_data(path))
        return compile(changed(os.environ[VARIABLE], fullname, source), path, 'exec', dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if not any(_PACKAGE + each.module == fullname for each in PLANTS[os.environ[VARIABLE]].changes):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


def install() -> None:
    """Have this process read its modules with the bug that its environment names."""
    if os.environ.get(VARIABLE):
        sys.meta_path.insert(0, _Finder())
