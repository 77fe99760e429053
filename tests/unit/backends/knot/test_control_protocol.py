"""Knot's control protocol, octet by octet."""

from __future__ import annotations

import socket

import pytest

from designate_pool.backends.knot import control_protocol
from designate_pool.backends.knot.control_protocol import KnotControl, Unit, encode, error_in
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError

BEGIN: Unit = {'command': 'conf-begin'}


class Answered(KnotControl):
    """A connection on which *said* has been answered already."""

    def __init__(self, said: bytes) -> None:
        self._socket, self.far = socket.socketpair()
        self._received, self._at = b'', 0
        self.far.sendall(said)

    def __enter__(self) -> Answered:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.far.close()

    def answer(self) -> list[Unit]:
        return list(self.ask(BEGIN, Deadline(1)))


def test_a_block_on_the_wire() -> None:
    block: list[Unit] = [{'command': 'conf-set', 'section': 'zone', 'id': 'a.'}, {'command': 'x', 'data': 'é'}]
    assert encode(block) == (b'\x01\x10\0\x08conf-set\x13\0\x04zone\x15\0\x02a.'
                             b'\x01\x10\0\x01x\x1a\0\x02\xc3\xa9'
                             b'\x03')


@pytest.mark.parametrize('value', ['', 'x' * 65536, 'a\0b'])
def test_a_value_that_knotd_would_take_for_another_is_not_sent(value: str) -> None:
    with pytest.raises(ValueError, match='id cannot be sent'):
        encode([{'command': 'conf-unset', 'section': 'zone', 'id': value}])


def test_the_units_of_an_answer() -> None:
    with Answered(b'\x01\x16\0\x02a.\x1a\0\x011' b'\x02\x16\0\x02a.\x1a\0\0' b'\x01' b'\x03' b'\x01rest') as control:
        assert control.answer() == [{'zone': 'a.', 'data': '1'}, {'zone': 'a.', 'data': ''}, {}]


def test_an_item_of_a_kind_that_a_later_knot_adds_is_passed_over() -> None:
    with Answered(b'\x01\x1c\0\x03new\x16\0\x02a.\x03') as control:
        assert control.answer() == [{'zone': 'a.'}]


def test_the_first_error_of_an_answer() -> None:
    assert error_in([{'zone': 'a.'}]) is None
    assert error_in([{'zone': 'a.'}, {'error': 'one'}, {'error': 'two'}]) == {'error': 'one'}


@pytest.mark.parametrize('said', [b'\x04', b'\xff', b'\x10\0\0', b'HTTP/1.1'])
def test_what_is_no_answer_is_said_to_be_none(said: bytes) -> None:
    with Answered(said) as control, pytest.raises(BackendError, match="does not speak Knot's control protocol"):
        control.answer()


@pytest.mark.parametrize('said', [b'', b'\x01', b'\x01\x16', b'\x01\x16\0\x05ab', b'\x00', b'\x01\x00'])
def test_an_answer_that_is_cut_short_is_a_lost_connection(said: bytes) -> None:
    with Answered(said) as control:
        control.far.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionError, match='closed the connection before it had answered'):
            control.answer()


def test_an_answer_in_single_octets() -> None:
    with Answered(b'') as control:
        for octet in b'\x01\x16\0\x02a.\x03':
            control.far.sendall(bytes([octet]))
        assert control.answer() == [{'zone': 'a.'}]


def test_no_more_is_sent_than_can_be_answered_without_being_read() -> None:
    blocks = [bytes(size) for size in (1, 40_000, 20_000, 12_768, 1, *[1] * 300)]
    chunks = list(control_protocol._chunks(blocks))
    assert [block for chunk in chunks for block in chunk] == blocks
    assert all(len(chunk) <= 100 and (len(chunk) == 1 or sum(map(len, chunk)) <= 32_768) for chunk in chunks)
    assert len(chunks) <= 7


def test_a_last_command_to_one_that_does_not_listen_costs_no_time_and_no_error() -> None:
    with Answered(b'') as control:
        control.far.close()
        control.send_last(BEGIN)
        control.send_last(BEGIN)
