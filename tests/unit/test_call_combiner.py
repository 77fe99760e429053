from __future__ import annotations

import threading
from collections.abc import Collection

import pytest

from designate_pool.call_combiner import CallCombiner
from testing.processes import wait_until


class Source:
    """Reads that can be held up, with a note of each."""

    def __init__(self) -> None:
        self.reads: list[set[str]] = []
        self.go = threading.Event()
        self.error: Exception | None = None

    def read(self, keys: Collection[str]) -> dict[str, int]:
        self.reads.append(set(keys))
        assert self.go.wait(10)
        if self.error is not None and len(self.reads) > 1:
            raise self.error
        return {key: len(self.reads) for key in keys}


class Asker(threading.Thread):
    def __init__(self, combiner: CallCombiner[str, int], key: str) -> None:
        super().__init__()
        self._combiner, self._key = combiner, key
        self.found: int | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.found = self._combiner.call([self._key])[self._key]
        except ValueError as error:
            self.error = error


def ask_meanwhile(combiner: CallCombiner[str, int], source: Source) -> list[Asker]:
    """One asker whose read is under way, and three more that came meanwhile; all have ended."""
    askers = [Asker(combiner, 'first')]
    wait_until(lambda: source.reads, 'the first read is under way')
    askers += [Asker(combiner, f'key{number}') for number in range(3)]
    wait_until(lambda: len(combiner._next.keys) == 3, 'the others wait')
    source.go.set()
    for asker in askers:
        asker.join(10)
    return askers


def test_who_asks_alone_is_answered_at_once() -> None:
    source = Source()
    source.go.set()
    combiner = CallCombiner(source.read)
    assert combiner.call(['a', 'b']) == {'a': 1, 'b': 1}
    assert combiner.call(['a']) == {'a': 2}
    assert source.reads == [{'a', 'b'}, {'a'}]


def test_all_who_ask_while_a_read_is_under_way_share_the_next() -> None:
    source = Source()
    askers = ask_meanwhile(CallCombiner(source.read), source)
    assert source.reads == [{'first'}, {'key0', 'key1', 'key2'}]
    assert [asker.found for asker in askers] == [1, 2, 2, 2]


def test_a_call_waits_for_as_many_as_shared_the_one_before() -> None:
    source = Source()
    combiner = CallCombiner(source.read, pause=60)
    ask_meanwhile(combiner, source)
    askers = []
    for number in range(3):
        wait_until(lambda: len(combiner._next.keys) == number, 'those before wait')
        askers.append(Asker(combiner, f'again{number}'))
    for asker in askers:
        asker.join(10)
    assert source.reads[2:] == [{'again0', 'again1', 'again2'}]


def test_a_call_does_not_wait_long_for_those_who_do_not_come_again() -> None:
    source = Source()
    combiner = CallCombiner(source.read, pause=0.01)
    ask_meanwhile(combiner, source)
    assert combiner.call(['alone']) == {'alone': 3}
    combiner._pause = 60
    assert combiner.call(['alone']) == {'alone': 4}, 'after a call of one key none waits'


def test_a_failure_is_told_to_all_who_share_it_and_the_next_read_goes_on() -> None:
    source = Source()
    source.error = ValueError('no database')
    combiner = CallCombiner(source.read)
    askers = ask_meanwhile(combiner, source)
    assert [str(asker.error) for asker in askers] == ['None', *['no database'] * 3]
    source.error = None
    assert combiner.call(['again']) == {'again': 3}


class Killed(BaseException):
    pass


def test_who_is_killed_while_reading_leaves_the_way_free() -> None:
    def read(keys: Collection[str]) -> dict[str, int]:
        if 'bad' in keys:
            raise Killed
        return dict.fromkeys(keys, 0)

    combiner: CallCombiner[str, int] = CallCombiner(read)
    with pytest.raises(Killed):
        combiner.call(['bad'])
    assert combiner.call(['good']) == {'good': 0}


def test_who_shares_the_read_of_one_that_is_killed_has_it_done_again() -> None:
    source = Source()
    killed: list[str] = []

    def read(keys: Collection[str]) -> dict[str, int]:
        found = source.read(keys)
        if len(source.reads) == 2:
            raise Killed
        return found

    class Doomed(Asker):
        def run(self) -> None:
            try:
                super().run()
            except Killed:
                killed.append(self._key)

    combiner = CallCombiner(read)
    askers = [Asker(combiner, 'first')]
    wait_until(lambda: source.reads, 'the first read is under way')
    doomed = Doomed(combiner, 'doomed')
    wait_until(lambda: combiner._next.keys, 'the doomed one waits')
    askers += [Asker(combiner, 'with the doomed one')]
    wait_until(lambda: len(combiner._next.keys) == 2, 'another waits with it')
    source.go.set()
    for asker in [*askers, doomed]:
        asker.join(10)
    assert killed == ['doomed']
    assert [asker.found for asker in askers] == [1, 3]
    assert source.reads == [{'first'}, {'doomed', 'with the doomed one'}, {'with the doomed one'}]
