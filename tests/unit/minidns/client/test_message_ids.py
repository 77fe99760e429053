"""Which ids queries get."""

from __future__ import annotations

from designate_pool.minidns.client.message_ids import MessageIds


def test_they_are_never_those_that_are_in_use() -> None:
    ids, used = MessageIds(), {number.to_bytes(2, 'big') for number in range(1, 2 ** 16, 2)}
    assert {key[1] % 2 for _ in range(50) for key in ids.take(64, used)} == {0}
    used |= {number.to_bytes(2, 'big') for number in range(2, 2 ** 16)}
    assert ids.take(1, used) == [bytes(2)]


def test_those_of_one_go_all_differ_and_follow_no_order() -> None:
    ids = MessageIds()
    goes = [ids.take(64, ()) for _ in range(1000)]
    assert all(len(set(some)) == len(some) == 64 for some in goes)
    assert len({key for some in goes for key in some}) > 2 ** 15, 'of 2 ** 16, about 0.62 are expected'
    assert not any(some == sorted(some) for some in goes)
