"""Whoever runs the system: freezes the pool, has its changes released in stages, and tries again what is held."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tests.torture.clients import Http
from tests.torture.lab import Lab

#: Seconds between two looks for held releases; one that is held at two of them begins again.
_PAUSE = 1.5
#: Seconds in which a service reads its configuration, and others see what of it is in the database.
_RELOADING = 30.0
#: Seconds that an operator waits for an answer.
_TIMEOUT = 8.0
#: What changes a zone's serial without an operation of a client.
_MOVED = sa.text("SELECT domains.name, zone_versions.serial_number FROM zone_versions JOIN domains "
                 "ON domains.id = zone_versions.domain_id WHERE zone_versions.kind = 'RELEASE'")
_STAGES = sa.text('SELECT release_stages FROM pools')


class Operator:
    """
    :ivar continued: how many held releases began again
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._apis = [Http(url, lab.tokens['olga'], _TIMEOUT) for url in lab.urls]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._continue_held, name='operator')
        self.continued = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def do(self, method: str, path: str, **options: Any) -> dict[str, Any] | None:
        """The answer of the first API that does it; None when none has said so."""
        for api in self._apis:
            try:
                code, answer = api.send(method, path, headers={'X-Auth-All-Projects': 'true'}, **options)
            except Exception:  # whatever ails this API: the other one is asked
                continue
            if code < 300:
                return answer
        return None

    def freeze(self) -> bool:
        """Freeze the pool; whether that was acknowledged."""
        return self.do('POST', f'{self._pool()}/tasks/freeze', json={'reason': 'torture'}) is not None

    def unfreeze(self) -> None:
        """Unfreeze the pool; tried until it is acknowledged."""
        while self.do('POST', f'{self._pool()}/tasks/unfreeze') is None:
            time.sleep(_PAUSE)

    def stage(self, release: str | None) -> bool:
        """Have the services release changes in stages, or not; whether the database has that in the end."""
        self._lab.release = release
        self._lab.reload()
        until = time.monotonic() + _RELOADING
        while time.monotonic() < until:
            if all(found == release for found, in self._read(_STAGES)):
                return True
            time.sleep(_PAUSE / 3)
        return False

    def released(self) -> list[tuple[str, int]]:
        """Names of zones, and serials that they got as their releases were held or went on."""
        return [(name, int(serial)) for name, serial in self._read(_MOVED)]

    def _pool(self) -> str:
        while (found := self.do('GET', '/v2/pools')) is None:
            time.sleep(_PAUSE)
        return f'/v2/pools/{found["pools"][0]["id"]}'

    def _read(self, statement: sa.TextClause) -> Sequence[Any]:
        """The rows; tried until the database answers."""
        engine = sa.create_engine(self._lab.database_url)
        try:
            while True:
                with contextlib.suppress(sa.exc.SQLAlchemyError), engine.connect() as connection:
                    return connection.execute(statement).all()
                time.sleep(_PAUSE)
        finally:
            engine.dispose()

    def _continue_held(self) -> None:
        before = set[str]()
        while not self._stopping.wait(_PAUSE):
            found = self.do('GET', '/v2/zones', params={'status': 'ERROR', 'limit': '1000'})
            held = {zone['id'] for zone in (found or {'zones': ()})['zones'] if (zone['release'] or {}).get('held')}
            for zone_id in held & before:
                self.continued += self.do('POST', f'/v2/zones/{zone_id}/tasks/continue_release') is not None
            before = held - before
