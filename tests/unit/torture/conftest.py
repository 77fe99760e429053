"""Histories written by hand: each call is the next second, unless it says when."""

from __future__ import annotations

from typing import Any

import pytest

from tests.torture import checker
from tests.torture.history import GONE, Event, foreign_rrset

ZONE, BELOW = 'a.example.', 'b.a.example.'
ONE, TWO, THREE = '10.0.0.1', '10.0.0.2', '10.0.0.3'
#: Words in steps that stand for something else than themselves and numbers.
_WORDS: dict[str, Any] = {'ONE': ONE, 'TWO': TWO, 'THREE': THREE, 'GONE': GONE, 'ZONE': ZONE, 'BELOW': BELOW,
                          'None': None, 'True': True, 'False': False, "''": ''}


class Story:
    """A history of a pool with three servers, of which two are enough.

    :ivar events: so far
    """

    def __init__(self, servers: str = 'xyz', threshold: int = 66, fed: str = '') -> None:
        self._servers = list(servers)
        self.events: list[Event] = [{'t': 0.0, 'e': 'run', 'seed': 1, 'servers': self._servers, 'fed': list(fed),
                                     'threshold': threshold, 'bound': 60.0}]

    def rules(self) -> set[str]:
        """Which rules were broken."""
        return {breach.rule for breach in checker.check(self.events)}

    def tell(self, steps: str) -> None:
        """Carry out *steps*: with commas between them, each the name of a method and its arguments."""
        for step in steps.split(', '):
            name, *words = step.split()
            arguments = [_value(word) for word in words if '=' not in word]
            getattr(self, name)(*arguments, **{key: _value(word) for key, _, word in (
                word.partition('=') for word in words if '=' in word)})

    def add(self, kind: str, at: float | None = None, **fields: Any) -> Event:
        event = {'t': self.events[-1]['t'] + 1 if at is None else at, 'e': kind, **fields}
        self.events.append(event)
        return event

    def invoke(self, op: int, kind: str, life: int | None = None, *changes: tuple[str, str, str], zone: str = ZONE,
               tenant: str = 'alpha', at: float | None = None) -> None:
        """
        :param changes: name, type and record, '' for none
        """
        self.add('invoke', at, op=op, client=f'client{op}', tenant=tenant, type=kind, zone=zone, life=life or op,
                 changes=[[name, rtype, 60, [record] if record else []] for name, rtype, record in changes])

    def end(self, op: int, how: str = 'ok', serial: int | None = None, at: float | None = None) -> None:
        self.add(how, at, op=op, code=202, **({'serial': serial, 'zone_id': str(op)} if how == 'ok' else {}))

    def create(self, op: int, serial: int | None = None, how: str = 'ok', zone: str = ZONE,
               tenant: str = 'alpha') -> None:
        self.invoke(op, 'create_zone', zone=zone, tenant=tenant)
        self.end(op, how, serial)

    def write(self, op: int, life: int, record: str, serial: int | None = None, how: str = 'ok', name: str = 'w',
              zone: str = ZONE, tenant: str = 'alpha') -> None:
        """Set the A record of a name, or delete it where *record* is empty."""
        self.invoke(op, 'change', life, (f'{name}.{zone}', 'A', record), zone=zone, tenant=tenant)
        self.end(op, how, serial)

    def begin(self, op: int, record: str) -> None:
        """A change of the first zone is begun."""
        self.invoke(op, 'change', 1, (f'w.{ZONE}', 'A', record))

    def delete(self, op: int, life: int, serial: int | None = None, how: str = 'ok', zone: str = ZONE) -> None:
        self.invoke(op, 'delete_zone', life, zone=zone)
        self.end(op, how, serial)

    def show(self, life: int, serial: int | None, status: str = 'ACTIVE', tenant: str = 'alpha', zone: str = ZONE,
             asked: float | None = None) -> None:
        """The API shows the zone."""
        now = self.events[-1]['t'] + 1
        self.add('shown', now, asked=now if asked is None else asked, tenant=tenant, zone=zone, zone_id=str(life),
                 life=life, status=status, action='NONE', serial=serial)

    def serve(self, server: str, life: int | None, serial: int | None, zone: str = ZONE, **more: Any) -> None:
        """Each of these servers says which serial it serves."""
        for each in server:
            now = self.events[-1]['t'] + 1
            self.add('served', now, asked=now, server=each, zone=zone, life=life, serial=serial, **more)

    def write_foreign(self, server: str, written: bool = True) -> None:
        """Somebody else writes into the zone on a server."""
        told = {'asked': self.events[-1]['t'] + 1, 'server': server, 'zone': ZONE}
        self.add('foreign_rrset', **told, written=False)
        if written:
            self.add('foreign_rrset', **told, written=True)

    def hand_over(self, server: str, life: int, serial: int, *records: str, name: str = 'w', zone: str = ZONE,
                  foreign: bool = False) -> None:
        """Each of these servers transfers the zone, with these A records at one name, and what somebody else wrote."""
        (owner, rtype), (ttl, rdatas) = foreign_rrset(zone)
        for each in server:
            now = self.events[-1]['t'] + 1
            self.add('contents', now, asked=now, server=each, zone=zone, life=life, serial=serial, rrsets=[
                [zone, 'SOA', 60, ['whatever']], *([[f'{name}.{zone}', 'A', 60, list(records)]] if records else []),
                *([[owner, rtype, ttl, list(rdatas)]] if foreign else [])])

    def fault(self, target: str, phase: str, spoils: bool = False, excuses: bool = True, fault: str = 'kill') -> None:
        self.add('fault', id=f'fault of {target}', fault=fault, target=target, phase=phase, spoils=spoils,
                 excuses=excuses)

    def heal(self) -> None:
        self.add('healed')

    def healed(self, life: int, serial: int, *records: str) -> None:
        """The end of a history: the zone as the API and the servers have it."""
        self.heal()
        self.show(life, serial)
        self.hand_over('xyz', life, serial, *records)


def _value(word: str) -> Any:
    return int(word) if word.isdigit() else _WORDS.get(word, word)


@pytest.fixture
def story() -> Story:
    return Story()
