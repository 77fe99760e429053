"""What py-spy writes of a program that it does not stop."""

from __future__ import annotations

from benchmarks.flames import area, read


def test_samples_count_by_stack_and_torn_names_are_dropped() -> None:
    found = read('main (a.py:3);send (amqp/channel.py:7) 3\n'
                 'main (a.py:9);send (amqp/channel.py:8) 2\n'
                 'main (a.py:3);<value>\n</value> (amqp/x\n'
                 'main (a.py:3) 1\n')
    assert found == {('main (a.py)', 'send (amqp/channel.py)'): 5, ('main (a.py)',): 1}
    assert {area(stack) for stack in found} == {'messages', 'switching'}
