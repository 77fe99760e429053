"""Ids of what is made together (RFC 9562 section 5.7)."""

from __future__ import annotations

import uuid

from designate_pool.model import new_ids


def test_they_are_different_ascending_and_uuids_of_version_7() -> None:
    ids = [*new_ids(1000), *new_ids(1000)]
    assert len(set(ids)) == 2000 and all(len(each) == 32 for each in ids)
    assert ids[:1000] == sorted(ids[:1000]) and ids[0][:12] <= ids[-1][:12]
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in ids} == {(7, uuid.RFC_4122)}


def test_none() -> None:
    assert new_ids(0) == []
