"""Plans that are kept, to be applied later exactly as they were seen."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol

from designate_pool.errors import InvalidField, PlanNotFound
from designate_pool.model import PlanState, StoredPlan, utcnow

_ID = re.compile(r'[0-9a-f]{32}')
_PREFIX = re.compile(r'[0-9a-f]{4,32}')
_TIMES = ('expires_at', 'applied_at', 'created_at', 'updated_at')
#: How long a plan is kept after it could last be applied.
KEPT_AFTER = timedelta(days=30)


class PlanStore(Protocol):
    """Where plans are kept."""

    def put(self, plan: StoredPlan) -> StoredPlan:
        """Keep *plan*; gives back what is kept, with the id and the times that it has."""

    def get(self, plan_id: str) -> StoredPlan:
        """
        :raises PlanNotFound: when there is none of that id
        """

    def find(self) -> list[StoredPlan]:
        """All that are kept, the newest first."""

    def settle(self, plan_id: str, state: PlanState, why: str | None) -> None:
        """Note what became of a plan.

        :raises PlanNotFound: when there is none of that id
        """


class FolderStore:
    """Plans as files in a folder, one JSON file each, that only its owner can read.

    A file is written whole or not at all.  Plans that could last be applied 30 days ago are removed when one is put.

    :param path: made when the first plan is put
    :param now: the time, aware and in UTC
    """

    def __init__(self, path: str | os.PathLike[str], now: Callable[[], datetime] = utcnow) -> None:
        self.path = pathlib.Path(path)
        self._now = now

    def put(self, plan: StoredPlan) -> StoredPlan:
        """
        :raises InvalidField: when the id is not 32 hexadecimal digits
        """
        if not _ID.fullmatch(plan.id):
            raise InvalidField(field='plan', why=f'its id {plan.id!r} is not 32 hexadecimal digits')
        now = self._now()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._files():
            if self._is_over(path, now):
                path.unlink(missing_ok=True)
        kept = dataclasses.replace(plan, created_at=plan.created_at or now, updated_at=now)
        self._write(kept)
        return kept

    def get(self, plan_id: str) -> StoredPlan:
        """
        :param plan_id: or the beginning of an id, of four digits at least, that no other has
        :raises PlanNotFound: when there is none, or the beginning is that of several
        :raises InvalidField: when its file is damaged
        """
        wanted = plan_id.lower()
        if not _PREFIX.fullmatch(wanted):
            raise PlanNotFound(plan=f'{plan_id} (an id is 32 hexadecimal digits, or the first four or more of them)')
        found = sorted(path.stem for path in self._files() if path.stem.startswith(wanted))
        if len(found) > 1:
            raise PlanNotFound(plan=f'{plan_id} alone: {", ".join(found)} begin with it')
        if not found:
            raise PlanNotFound(plan=plan_id)
        return self._read(self._file(found[0]))

    def find(self) -> list[StoredPlan]:
        """
        :raises InvalidField: when a file is damaged
        """
        return sorted((self._read(path) for path in self._files()),
                      key=lambda plan: (plan.created_at is not None, plan.created_at, plan.id), reverse=True)

    def settle(self, plan_id: str, state: PlanState, why: str | None) -> None:
        now = self._now()
        plan = self.get(plan_id)
        applied_at = now if state in (PlanState.APPLIED, PlanState.FAILED) else plan.applied_at
        self._write(dataclasses.replace(plan, state=state, why=why, updated_at=now, applied_at=applied_at))

    def _file(self, plan_id: str) -> pathlib.Path:
        return self.path / f'{plan_id}.json'

    def _files(self) -> list[pathlib.Path]:
        return [path for path in self.path.glob('*.json') if _ID.fullmatch(path.stem)]

    def _is_over(self, path: pathlib.Path, now: datetime) -> bool:
        try:
            expires_at = self._read(path).expires_at
        except (InvalidField, PlanNotFound):
            # Damaged files are for people to look at; another process may have removed one meanwhile.
            return False
        return expires_at is not None and expires_at + KEPT_AFTER < now

    def _write(self, plan: StoredPlan) -> None:
        """In a file beside it, which then takes its place: who reads meanwhile has the old one or the new one."""
        told: dict[str, Any] = dataclasses.asdict(plan)
        for name in _TIMES:
            told[name] = None if told[name] is None else told[name].isoformat()
        # mkstemp makes the file for its owner alone.
        handle, beside = tempfile.mkstemp(dir=self.path, prefix='.', suffix='.new')
        try:
            with open(handle, 'w', encoding='utf-8') as file:
                json.dump(told, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._file(plan.id))
        except BaseException:  # whatever ends it, no half of a file stays
            os.unlink(beside)
            raise

    def _read(self, path: pathlib.Path) -> StoredPlan:
        try:
            told = json.loads(path.read_text(encoding='utf-8'))
            for name in _TIMES:
                told[name] = None if told[name] is None else datetime.fromisoformat(told[name])
            return StoredPlan(**{**told, 'state': PlanState(told['state'])})
        except FileNotFoundError:
            raise PlanNotFound(plan=path.stem) from None
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidField(field=str(path), why=f'it is not the file of a plan ({error})') from error
