"""Differences of zones: what is packed comes back, and what is undone is as it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from designate_pool.model import ZoneRecord, differences
from designate_pool.model.differences import RecordDifference

KEYS = st.tuples(st.sampled_from(['example.com.', 'www.example.com.', r'\000\"[.example.com.']),
                 st.sampled_from(['A', 'TXT']), st.binary(max_size=3))
#: The TTL of each record that a zone has.
ZONES = st.dictionaries(KEYS, st.none() | st.integers(0, 2))


def records(zone: dict[tuple[str, str, bytes], int | None]) -> set[ZoneRecord]:
    return {(name, rtype, ttl, wire) for (name, rtype, wire), ttl in zone.items()}


@given(ZONES, ZONES)
def test_what_is_packed_comes_back(gone: dict[tuple[str, str, bytes], int | None],
                                   added: dict[tuple[str, str, bytes], int | None]) -> None:
    unpacked = differences.unpack(differences.pack(records(gone), records(added)))
    assert [set(unpacked.gone), set(unpacked.added)] == [records(gone), records(added)]
    resolved = differences.unpack(differences.pack(records(gone), ()), 7)
    assert set(resolved.gone) == {(name, rtype, 7 if ttl is None else ttl, wire)
                                  for name, rtype, ttl, wire in records(gone)}


def test_a_long_one_is_compressed() -> None:
    record = 'www.example.com.', 'TXT', None, bytes(60_000)
    packed = differences.pack((), [record])
    assert len(packed) < 1000 and differences.unpack(packed).added == [record]
    assert differences.pack((), ()) == b'' and differences.unpack(b'') == ((), ())


@given(st.lists(ZONES, min_size=1, max_size=5))
def test_what_is_undone_is_as_it_was(zones: list[dict[tuple[str, str, bytes], int | None]]) -> None:
    contents = [records(zone) for zone in zones]
    steps = [RecordDifference(list(former - new), list(new - former)) for former, new in zip(contents, contents[1:])]
    for number, before in enumerate(contents):
        undone = list(differences.undo(contents[-1], reversed(steps[number:])))
        assert len(undone) == len(before) and set(undone) == before
        present = [(name, rtype, ttl, wire, wire.hex()) for (name, rtype, wire), ttl in sorted(zones[-1].items())]
        assert list(differences.undo_in_order(present, reversed(steps[number:]), lambda _, wire: wire.hex())) == [
            (name, rtype, ttl, wire.hex()) for (name, rtype, wire), ttl in sorted(zones[number].items())]
