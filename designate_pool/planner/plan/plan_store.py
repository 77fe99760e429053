"""Stores of plans that are to be applied later, exactly as they were shown."""

from __future__ import annotations

import contextlib
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
#: How long a plan is kept after it has expired.
RETENTION = timedelta(days=30)


class PlanStore(Protocol):
    """Where plans are stored."""

    def put(self, plan: StoredPlan) -> StoredPlan:
        """Store *plan*; returns it as stored, with its id and times."""

    def get(self, plan_id: str) -> StoredPlan:
        """The plan with this id, or PlanNotFound."""

    def find(self, state: PlanState | None = None) -> list[StoredPlan]:
        """All plans, those in *state* if given, the newest first."""

    def settle(self, plan_id: str, state: PlanState, why: str | None) -> None:
        """Record how a plan ended; PlanNotFound when there is none."""


class FolderStore(PlanStore):
    """Plans as JSON files in a folder, readable by their owner alone.

    Files are replaced atomically.  :meth:`put` removes plans that expired 30 days ago or earlier.

    :param now: the time, aware and in UTC
    """

    def __init__(self, path: str | os.PathLike[str], now: Callable[[], datetime] = utcnow) -> None:
        self.path = pathlib.Path(path)
        self._now = now

    def put(self, plan: StoredPlan) -> StoredPlan:
        """Write a new plan into the folder; InvalidField unless its id is 32 hexadecimal digits."""
        if not _ID.fullmatch(plan.id):
            raise InvalidField(field='plan', why=f'its id {plan.id!r} is not 32 hexadecimal digits')
        now = self._now()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._files():
            if self._is_obsolete(path, now):
                path.unlink(missing_ok=True)
        stored = dataclasses.replace(plan, created_at=plan.created_at or now, updated_at=now)
        self._write(stored)
        return stored

    def get(self, plan_id: str) -> StoredPlan:
        """The plan whose id begins so.

        :param plan_id: an id, or a unique prefix of at least four digits
        :raises PlanNotFound: when there is none, or the prefix is ambiguous
        :raises InvalidField: when its file is damaged
        """
        prefix = plan_id.lower()
        if not _PREFIX.fullmatch(prefix):
            raise PlanNotFound(plan=f'{plan_id} (an id is 32 hexadecimal digits, or the first four or more of them)')
        matches = sorted(path.stem for path in self._files() if path.stem.startswith(prefix))
        if len(matches) > 1:
            raise PlanNotFound(plan=f'{plan_id} alone: {", ".join(matches)} begin with it')
        if not matches:
            raise PlanNotFound(plan=plan_id)
        return self._read(self._file(matches[0]))

    def find(self, state: PlanState | None = None) -> list[StoredPlan]:
        """All plans, those in *state* if given, the newest first; InvalidField for a damaged file."""
        plans: list[StoredPlan] = []
        for path in self._files():
            with contextlib.suppress(PlanNotFound):  # another process may have removed the file
                plans.append(self._read(path))
        return sorted((plan for plan in plans if state in (None, plan.state)),
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

    def _is_obsolete(self, path: pathlib.Path, now: datetime) -> bool:
        try:
            expires_at = self._read(path).expires_at
        except (InvalidField, PlanNotFound):
            # Damaged files are left for the operator; another process may have removed the file.
            return False
        return expires_at is not None and expires_at + RETENTION < now

    def _write(self, plan: StoredPlan) -> None:
        """Write to a temporary file and rename it, so that readers never see a partial one."""
        fields: dict[str, Any] = dataclasses.asdict(plan)
        for name in _TIMES:
            fields[name] = None if fields[name] is None else fields[name].isoformat()
        handle, temporary = tempfile.mkstemp(dir=self.path, prefix='.', suffix='.new')  # with mode 0600
        try:
            with open(handle, 'w', encoding='utf-8') as file:
                json.dump(fields, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._file(plan.id))
        except BaseException:  # no partial file may remain, whatever happened
            os.unlink(temporary)
            raise

    def _read(self, path: pathlib.Path) -> StoredPlan:
        try:
            fields = json.loads(path.read_text(encoding='utf-8'))
            for name in _TIMES:
                fields[name] = None if fields[name] is None else datetime.fromisoformat(fields[name])
            return StoredPlan(**{**fields, 'state': PlanState(fields['state'])})
        except FileNotFoundError:
            raise PlanNotFound(plan=path.stem) from None
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidField(field=str(path), why=f'it is not the file of a plan ({error})') from error
