"""The words that states are told in, ids and times."""

from __future__ import annotations

import enum
import uuid
from datetime import datetime, timezone


class Word(str, enum.Enum):
    """An enum whose members are their own text."""

    def __str__(self) -> str:
        return self.value


class Action(Word):
    """What is due for a domain, or what a row of pool_manager_status is about."""

    NONE = 'NONE'
    CREATE = 'CREATE'
    UPDATE = 'UPDATE'
    DELETE = 'DELETE'


class Task(Word):
    """What is due for a record."""

    NONE = 'NONE'
    ADD = 'ADD'
    UPDATE = 'UPDATE'
    DELETE = 'DELETE'


class Status(Word):
    """Where a domain or record stands."""

    PENDING = 'PENDING'
    ACTIVE = 'ACTIVE'
    ERROR = 'ERROR'
    DELETED = 'DELETED'


class Outcome(Word):
    """How an operation ended, on one server or for the pool.  None in its place means not known yet."""

    SUCCESS = 'SUCCESS'
    ERROR = 'ERROR'


class ServerState(Word):
    """Where a server stands in its pool."""

    JOINING = 'joining'
    ACTIVE = 'active'
    MAINTENANCE = 'maintenance'
    DRAINING = 'draining'
    REMOVED = 'removed'


class Answer(Word):
    """What a server said when it was asked for a zone's serial."""

    SERIAL = 'SERIAL'
    NO_ZONE = 'NO_ZONE'
    NOT_AUTH = 'NOT_AUTH'
    TIMEOUT = 'TIMEOUT'
    BAD = 'BAD'


def new_id() -> str:
    return uuid.uuid4().hex


def utcnow() -> datetime:
    return datetime.now(timezone.utc)
