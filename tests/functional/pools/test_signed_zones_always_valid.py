"""A zone that is signed and changed while servers and programs die: resolvers that ask each make all the time find no
answer that is not valid.

``python -m tests.fixtures.always_valid`` is the long form.
"""

from __future__ import annotations

import pathlib

from testing.processes import wait_until
from tests.fixtures.always_valid import AlwaysValid


def test_nothing_invalid_is_served_while_keys_are_rolled_and_everything_dies(tmp_path: pathlib.Path) -> None:
    with AlwaysValid(tmp_path, 1, pause=0.1).running() as zone:
        zone.dnssec('POST', policy='default')
        zone.wait_for('secure')
        zone.live(30, kills=2, zsk_seconds=5, stopped=4)
    assert zone.told['kills'] == 2 and zone.told['wiped'] == zone.told['stopped'] == 4, zone.told
    assert zone.told['changes 202'] > 20 and zone.told['ZSK rolled'] > 1 and zone.told['KSK rolled'], zone.told


def test_a_zone_of_10000_names_is_signed_and_unsigned_while_it_changes(tmp_path: pathlib.Path) -> None:
    with AlwaysValid(tmp_path, 2, more=10_000, pause=0.2).running() as zone:
        with zone.without('nsd'):
            zone.dnssec('POST', policy='default')
            zone.wait_for('signed', changing=True)
            for _ in range(5):
                zone.change()
                zone.pool.stack.wait_for(zone.zone)
            assert zone.state() == 'signed' and 'nsd' in str(zone.dnssec('GET', status=200)['keys'])
        zone.wait_for('secure', changing=True)
        zone.verified()
        wait_until(zone.watch.has_asked_everyone, 'everyone was asked while it is secure')
        zone.dnssec('DELETE')
        zone.wait_for(None, changing=True)
        zone.same()
