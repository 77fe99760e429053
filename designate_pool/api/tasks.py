"""What became of imports.

An import is carried out while its request runs, so a task is only a note of how it ended.  The notes are kept in the
memory of this API process, the newest few thousand of them: another API process does not know them, and a restart
forgets them.  The zone that an import made does not depend on its note.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
from datetime import datetime

from designate_pool.errors import NotFound
from designate_pool.model import Context

KEPT = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class Import:
    """How an import ended; *domain_id* is None when it failed, and *message* says why."""

    id: str
    project_id: str
    created_at: datetime
    updated_at: datetime
    domain_id: str | None
    message: str

    @property
    def status(self) -> str:
        return 'ERROR' if self.domain_id is None else 'COMPLETE'


class Imports:
    """The newest *kept* imports of this process."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._tasks: collections.OrderedDict[str, Import] = collections.OrderedDict()
        self._lock = threading.Lock()

    def add(self, task: Import) -> None:
        with self._lock:
            self._tasks[task.id] = task
            while len(self._tasks) > self._kept:
                self._tasks.popitem(last=False)

    def get(self, context: Context, task_id: str) -> Import:
        """
        :raises NotFound: when there is none, or it is another project's
        """
        with self._lock:
            task = self._tasks.get(task_id)
        if task is None or not _visible(context, task):
            raise NotFound(what=f'import {task_id}')
        return task

    def remove(self, context: Context, task_id: str) -> None:
        self.get(context, task_id)
        with self._lock:
            self._tasks.pop(task_id, None)

    def visible(self, context: Context) -> list[Import]:
        """Those that *context* may see, newest first."""
        with self._lock:
            tasks = list(self._tasks.values())
        return [task for task in reversed(tasks) if _visible(context, task)]


def _visible(context: Context, task: Import) -> bool:
    # whoever names no project sees all, as with zones
    return context.all_projects or not context.project_id or task.project_id == context.project_id
