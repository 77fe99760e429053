"""Bugs that are planted to see whether the state machine finds them by itself.

Those of the torture kit that it can see, and others that take a certain order of steps.  Each is a change of the text
of some modules, see :mod:`tests.torture.planted`.

``python -m tests.unit.state_machines.planted a_late_creation_stays 100 --show``
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import time
import traceback

from tests.torture import planted
from tests.torture.planted import Change, Plant

_ROWS = 'pool_manager.reconcile.row_transitions'
_STATE = 'pool_manager.reconcile.domain_state'
_OUTCOMES = 'pool_manager.reconcile.outcomes'
_STATUSES = 'storage.operations.server_statuses'

PLANTS = {
    'two_calls_for_one_name': Plant('a server is called for a name while another call for it is in flight', (), (
        Change('pool_manager.reconcile.reconciler', '            elif others:\n', '            elif False:\n'),
        Change('pool_manager.reconcile.reconciler', 'if state.is_busy(row.server_id):', 'if False:'))),
    'the_last_writer_wins': Plant('a row is written over one that somebody else has written meanwhile', (), (
        Change(_STATUSES, 'where=TABLE.c.version < insert.excluded.version', 'where=sa.true()'),)),
    'any_generation': Plant('a report on a former state of a name counts', (), (
        Change('central.rules.status', ' or report.generation != domain.generation:', ':'),)),
    'former_incarnations_count': Plant('what was heard of a zone that the server has lost since counts', (), (
        Change(_OUTCOMES, 'if result.incarnation is not None and result.incarnation < update.incarnation:',
               'if False:'),
        Change(_OUTCOMES, 'if (update.incarnation > 0 and not update.diverged',
               'if (False and update.incarnation > 0 and not update.diverged'))),
    'a_lost_zone_keeps_its_serial': Plant('a server counts with the serial that it had when it lost the zone', (), (
        Change(_ROWS, 'row, serial_number=None, incarnation=row.incarnation + 1',
               'row, incarnation=row.incarnation + 1'),)),
    'nothing_is_superseded': Plant('the deletion of a former zone goes on when its name is used again', (), (
        Change(_STATE, 'if newer is not None and newer.generation > state.domain.generation:', 'if False:'),)),
    'nothing_is_created_again': Plant('a zone that a late deletion has removed stays away', (), (
        Change(_OUTCOMES, 'if self.step.live:\n            self._recreate(outcomes)', 'pass'),)),
    'a_late_creation_stays': Plant('a zone whose creation ends after its deletion began stays', (), (
        Change(_OUTCOMES, '        if makes and outcome.result.ok:\n', '        if False:\n'),)),
    'reports_go_back': Plant('a late report of an older serial counts', (), (
        Change('central.rules.status', 'is_reported or not consensus', 'not consensus'),)),
    'former_zones_count': Plant('a server counts with the zone of a former domain of the name', (), (
        Change('consensus', 'domain.first_serial is None or within(', 'True or within('),)),
    'claims_of_others_are_taken': Plant('rows that somebody else has claimed are claimed', (), (
        Change(_STATUSES, 'return TABLE.c.claimed_until.is_(None) | (TABLE.c.claimed_until < now)',
               'return sa.true()'),)),
    'calls_without_a_claim': Plant('a call is made although its claim has ended meanwhile', (), (
        Change('pool_manager.dispatch.server_worker',
               'return row.claimed_until is None or row.claimed_until > until', 'return True'),)),
    'any_claim_is_ours': Plant("the outcome of a call counts for another's row", (), (
        Change(_ROWS, 'return (row.claimed_by == claimed.claimed_by and row.claimed_until is not None',
               'return True or (row.claimed_by == claimed.claimed_by and row.claimed_until is not None'),)),
    'rows_go_before_calls_end': Plant('a deletion is complete while a call for the name is in flight', (), (
        Change('pool_manager.reconcile.reconciler', 'if not state.call_claims and', 'if'), *planted.PURGE_ANY_ROW)),
    'domains_are_read_first': Plant('domains are read before their rows', (), (
        Change(_STATE, '    rows = server_statuses.for_domains(tx, domain_ids, server_ids)\n'
                       '    domains = domain_store.get_many(tx, domain_ids)\n',
               '    domains = domain_store.get_many(tx, domain_ids)\n'
               '    rows = server_statuses.for_domains(tx, domain_ids, server_ids)\n'),)),
    'one_of_three_less': Plant('the number of servers that must agree is rounded down', (), (
        Change('consensus', 'max(1, -(-total * threshold_percentage // 100))',
               'max(1, total * threshold_percentage // 100)'),)),
    'a_repeated_creation_is_refused': Plant('a creation whose commit was repeated is refused, and done', (), (
        Change('central.domain_creator', 'if last is not None and last.id == domain_id:', 'if False:'),)),
    'a_difference_from_another_serial': Plant('a server gets the difference that another server needs', (), (
        Change('minidns.zones.loader', "key = f'{head.domain_id} {client_serial}'",
               "key = f'{head.domain_id}'"),)),
    'the_catalog_keeps_deleted_zones': Plant('a zone that is being deleted is still in the catalog', (), (
        Change('storage.serving.catalog', '_IS_MEMBER = (domains.c.deleted == ALIVE) & (domains.c.action != '
               'Action.DELETE)', '_IS_MEMBER = sa.true()'),)),
    'fed_zones_stay': Plant('a deletion leaves a zone on a server that is fed by records', (), (
        Change('pool_manager.dispatch.record_sync',
               '                self._provider.delete_zone(self.domain.name)\n', ''),)),
    'drained_zones_stay': Plant('a server that is drained keeps the zones that are to be deleted from it', (), (
        Change('pool_manager.periodic.join_and_drain',
               'failed, waiting = self._delete(backend, list(domains.values()))',
               'failed, waiting = list[CallResult](), set[str]()'),)),
    'a_change_is_made_again': Plant('a change of a recordset whose commit was not heard of is made again', (), (
        Change('central.recordset_changes', '            if is_done:\n', '            if False:\n'),)),
    'two_changes_of_a_domain_at_once': Plant('two requests for one domain do not see each other in a transaction', (), (
        Change('central.recordset_changes', '[request for domain_id, request in first.items() if domain_id in locked]',
               '[request for request in requests if request.domain_id in locked]'),)),
    'answers_of_others': Plant('a request is answered with the domain that another one has created', (), (
        Change('central.domain_creator', '{by_id[domain.id]: domain for domain in created}',
               'dict(zip(requests, created))'),)),
    'requests_join_what_has_begun': Plant('requests that come during a transaction of several join that one', (), (
        Change('call_combiner', '''self._next = _Batch(threading.Event())  # callers that come from now on join this one
            batch.result = self._function(batch.keys)
''', '''pass
            try:
                batch.result = self._function(batch.keys)
            finally:
                self._next = _Batch(threading.Event())
'''),)),
    **{name: planted.PLANTS[name] for name in (
        'claims_never_end', 'silence_is_absence', 'count_the_newest', 'count_a_stale_serial', 'report_is_active',
        'lose_cast_without_due_row', 'purge_too_early', 'gone_at_once', 'serials_begin_anew', 'deleted_records_stay',
        'journal_forgets_removals', 'lost_zone_is_forgotten', 'commit_is_lost')},
}

#: Those that it finds for certain in :data:`RUNS` runs with the choices of :data:`SEED`, mostly in ten.
FOUND = ('count_the_newest', 'count_a_stale_serial', 'lose_cast_without_due_row', 'serials_begin_anew',
         'journal_forgets_removals', 'one_of_three_less', 'a_difference_from_another_serial', 'commit_is_lost',
         'the_catalog_keeps_deleted_zones', 'fed_zones_stay', 'a_change_is_made_again',
         'two_changes_of_a_domain_at_once', 'answers_of_others', 'requests_join_what_has_begun', 'silence_is_absence',
         'purge_too_early', 'claims_never_end', 'lost_zone_is_forgotten', 'gone_at_once', 'drained_zones_stay')
RUNS, SEED = 100, 1


def run(examples: int, seed: int | None = None) -> tuple[collections.Counter[str], BaseException | None]:
    """Run the state machine until it finds something.

    :param seed: of what is chosen; None for the choices of the unit suite
    :returns: how many runs were made, their steps and shared transactions, and what the last one found
    """
    # What is planted has to be there first.
    import hypothesis
    from hypothesis.stateful import run_state_machine_as_test

    from tests.unit.state_machines.machine import STEPS, ClusterMachine

    counts: collections.Counter[str] = collections.Counter()

    class CountedMachine(ClusterMachine):
        def teardown(self) -> None:
            counts['runs'] += 1
            try:
                super().teardown()
            finally:
                counts['steps'] += self.cluster.scheduler.ticks
                counts['shared'] += sum('writes together' in line for line in self.cluster.log if line[0].isdigit())

    chosen = hypothesis.settings(
        max_examples=examples, stateful_step_count=STEPS, derandomize=seed is None, deadline=None, database=None,
        phases=[hypothesis.Phase.generate], suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False)
    try:
        run_state_machine_as_test(CountedMachine if seed is None else hypothesis.seed(seed)(CountedMachine),
                                  settings=chosen)
    except Exception as error:
        return counts, error
    return counts, None


def main() -> int:
    parser = argparse.ArgumentParser(description='Run the state machine with a bug planted, or with none.')
    parser.add_argument('plant', choices=['none', *PLANTS])
    parser.add_argument('examples', type=int)
    parser.add_argument('--seed', type=int)
    parser.add_argument('--show', action='store_true', help='show what was found')
    chosen = parser.parse_args()
    if chosen.plant != 'none':
        os.environ[planted.VARIABLE] = chosen.plant
        planted.PLANTS.update(PLANTS)
        planted.install()
    began = time.process_time()
    counts, error = run(chosen.examples, chosen.seed)
    what = f'not found in {counts["runs"]} runs' if error is None else f'found by run {counts["runs"]}'
    print(f'{chosen.plant}: {what}, {counts["steps"]} steps, {counts["shared"]} transactions of several requests, '
          f'{time.process_time() - began:.0f} s of processor time')
    if error is not None and chosen.show:
        traceback.print_exception(error)
    return 0 if error is None else 1


if __name__ == '__main__':
    sys.exit(main())
