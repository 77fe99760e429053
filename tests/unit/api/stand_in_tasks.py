"""Imports and exports in memory, of the stand-in's zones."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Sequence
from typing import IO

from designate_pool.api.services.zone_task_store import ZoneTaskStore
from designate_pool.errors import InvalidField, PoolError, ZoneExportNotFound, ZoneImportNotFound
from designate_pool.model import Context, Domain, PageRequest, ZoneTask, ZoneTaskKind, ZoneTaskStatus, new_id, utcnow
from tests.unit.api.stand_in import StandIn


class StandInTasks(ZoneTaskStore):
    """Has no database; an import is carried out when it is taken in."""

    def __init__(self, central: StandIn) -> None:
        super().__init__(None)
        self._central = central
        self._tasks: dict[tuple[ZoneTaskKind, str], ZoneTask] = {}

    def find(self, kind: ZoneTaskKind, who: Context, page: PageRequest) -> list[ZoneTask]:
        return [task for (each, _), task in self._tasks.items() if each is kind]

    def get(self, kind: ZoneTaskKind, who: Context, task_id: str) -> ZoneTask:
        if (kind, task_id) not in self._tasks:
            raise (ZoneImportNotFound if kind is ZoneTaskKind.IMPORT else ZoneExportNotFound)(task=task_id)
        return self._tasks[kind, task_id]

    def remove(self, kind: ZoneTaskKind, who: Context, task_id: str) -> None:
        self.get(kind, who, task_id)
        del self._tasks[kind, task_id]

    def store_export(self, who: Context, domain: Domain) -> ZoneTask:
        stored = self._keep(ZoneTask(new_id(), ZoneTaskKind.EXPORT, status=ZoneTaskStatus.COMPLETE,
                                     domain_id=domain.id))
        return dataclasses.replace(stored, status=ZoneTaskStatus.PENDING)

    def store_import(self, who: Context, pieces: Iterable[bytes], pool_id: str | None = None,
                     attributes: str = '') -> ZoneTask:
        text = b''.join(pieces).decode()
        task = ZoneTask(new_id(), ZoneTaskKind.IMPORT, project_id=who.project_id, size=len(text))
        try:
            word, _, rest = text.partition(' ')
            if word != '$ORIGIN' or not rest.split():
                raise InvalidField(field='zone file', why='line 1: there is no $ORIGIN')
            domain = self._central.create_domain(who, {'name': rest.split()[0], 'email': 'hostmaster@example.com'})
        except PoolError as error:
            return self._keep(dataclasses.replace(task, status=ZoneTaskStatus.ERROR, message=str(error)))
        return self._keep(dataclasses.replace(task, status=ZoneTaskStatus.COMPLETE, domain_id=domain.id,
                                              message=f'{domain.name} imported'))

    def store_imports(self, who: Context, zone_files: Sequence[bytes], pool_id: str | None = None,
                      attributes: str = '') -> list[ZoneTask]:
        return [self.store_import(who, [each], pool_id, attributes) for each in zone_files]

    def wait_for(self, task: ZoneTask) -> ZoneTask:
        return task

    def zone_file(self, domain_id: str) -> tuple[IO[bytes], int]:
        text = f'$ORIGIN {self._central.domains[domain_id].name}\n'.encode()
        return io.BytesIO(text), len(text)

    def _keep(self, task: ZoneTask) -> ZoneTask:
        task = dataclasses.replace(task, created_at=utcnow(), updated_at=utcnow())
        self._tasks[task.kind, task.id] = task
        return task
