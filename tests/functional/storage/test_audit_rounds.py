"""A round over all domains as it stands in each database."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone

from designate_pool.model import Audit, AuditKind, Counts, SigningState, ZoneSigning
from designate_pool.storage.operations import sweeps
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains as domain_table
from testing.rows import default_pool_id, insert_domains

SERIALS = AuditKind.SERIALS
BEGAN = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def present(storage: Storage) -> Audit:
    found = storage.read(sweeps.get, 'default', SERIALS)
    assert found is not None
    return found


def test_a_round_goes_from_page_to_page_and_what_is_heard_late_counts_for_the_last(storage: Storage) -> None:
    for _ in range(2):
        storage.run(sweeps.create, 'default', SERIALS, BEGAN)
    first = present(storage)
    claimed = storage.run(sweeps.claim, first, 'one', BEGAN, at(30))
    assert claimed is not None and storage.run(sweeps.claim, first, 'two', BEGAN, at(30)) is None
    assert storage.run(sweeps.advance, claimed, 'd' * 32, Counts(2, 4), 1, at(60), at(1))
    assert not storage.run(sweeps.advance, claimed, 'e' * 32, Counts(2, 4), 1, at(60), at(1))
    storage.run(sweeps.count_answers, 'default', SERIALS, BEGAN, Counts(asked=4), 1, at(2))
    half = present(storage)
    assert (half.after_id, half.now, half.sent, half.heard, half.last) == ('d' * 32, Counts(2, 4, 4), 1, 1, None)

    last = storage.run(sweeps.claim, half, 'two', at(60), at(90))
    assert last is not None and last.started_at == BEGAN
    assert storage.run(sweeps.advance, last, '', Counts(1, 2), 1, at(120), at(61))
    storage.run(sweeps.count_answers, 'default', SERIALS, BEGAN, Counts(asked=2, unanswered=1, findings=1), 1, at(64))
    storage.run(sweeps.count_answers, 'default', SERIALS, at(-120), Counts(asked=9), 1, at(65))
    over = present(storage)
    assert (over.last, over.last_seconds, over.last_started_at) == (Counts(3, 6, 6, 1, 1), 64.0, BEGAN)
    assert (over.now, over.after_id, over.next_at, over.sent, over.heard) == (Counts(), '', at(120), 2, 2)
    assert storage.read(sweeps.of_pool, 'default') == [over]

    second = storage.run(sweeps.claim, over, 'one', at(120), at(150))
    assert second is not None and (second.started_at, second.sent, second.heard) == (at(120), 0, 0)


def test_a_page_has_what_is_at_rest_and_tells_what_servers_lack(storage: Storage) -> None:
    ids = storage.run(insert_domains, 5, 7)
    pool_id = storage.read(default_pool_id)
    page = storage.read(sweeps.page, pool_id, ids[0], 3, ['a' * 32])
    assert page.last_id == ids[3] and [key for key, _, _ in page.domains] == ids[1:4] == page.lacking
    assert page.domains[0] == (ids[1], f'{ids[1]}.example.com.', 7)
    rest = storage.read(sweeps.page, pool_id, page.last_id, 3, [])
    assert rest == sweeps.DomainPage('', [(ids[4], f'{ids[4]}.example.com.', 7)], [], [])


def test_a_page_leaves_out_zones_that_are_held_of_which_servers_have_newer_versions(storage: Storage) -> None:
    held, signed = storage.run(insert_domains, 2, 7)
    pool_id = storage.read(default_pool_id)
    storage.run(lambda tx: tx.execute(domain_table.update().values(is_signed=True)))
    for domain_id, state in (held, SigningState.HELD), (signed, SigningState.SECURE):
        storage.run(zone_signing.save_state, ZoneSigning(domain_id, 'default', 13, 'NSEC', BEGAN, state=state), BEGAN)
    page = storage.read(sweeps.page, pool_id, '', 5, ['a' * 32])
    assert [key for key, _, _ in page.domains] == [signed] == page.lacking


def test_what_the_parent_has_is_noted_where_it_is_new_and_something_waits_for_it(storage: Storage) -> None:
    pool_id = storage.read(default_pool_id)
    first, _ = storage.run(insert_domains, 2)
    storage.run(lambda tx: tx.execute(domain_table.update().where(domain_table.c.id == first).values(is_signed=True)))
    last_id, page = storage.read(sweeps.signed_page, pool_id, '', 10)
    assert last_id == '' and [is_signed for key, _, is_signed in page if key == first] == [True]
    assert [is_signed for key, _, is_signed in page if key != first] == [False]

    def seen(ds: list[str] | None) -> dict[str, dict[str, list[str] | None]]:
        return {first: {'192.0.2.1:53': ds}, 'f' * 32: {'192.0.2.1:53': ['1 13 2 ab']}}

    def state() -> ZoneSigning:
        found = storage.read(zone_signing.state_of, first)
        assert found is not None
        return found

    storage.run(zone_signing.save_state, ZoneSigning(first, 'default', 13, 'NSEC', BEGAN), BEGAN)
    for moment, ds in ((1, ['1 13 2 ab']), (2, ['1 13 2 ab']), (3, None)):
        storage.run(zone_signing.report_ds, seen(ds), at(moment))
    assert state().next_event_at == at(1) and [ds for _, ds in state().ds_seen.values()] == [['1 13 2 ab']]
    storage.run(zone_signing.report_ds, seen([]), at(4))
    storage.run(zone_signing.report_ds, seen([]), at(5))
    assert state().next_event_at == at(4) and [ds for _, ds in state().ds_seen.values()] == [[]]
    storage.run(zone_signing.save_state, dataclasses.replace(
        state(), state=SigningState.DS_LEAVING, ds_seen={'forced by an administrator': ('', ())}), at(6))
    storage.run(zone_signing.report_ds, seen(['1 13 2 ab']), at(7))
    assert list(state().ds_seen) == ['forced by an administrator']
