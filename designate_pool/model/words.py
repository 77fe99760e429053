"""The words that states are told in, ids and times."""

from __future__ import annotations

import enum
import os
import time
import uuid
from datetime import datetime, timezone


class Word(str, enum.Enum):
    """An enum whose members are their own text."""

    # Enum's own is a Python call for each look into a dict, and not that of an equal text.
    __hash__ = str.__hash__

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


def new_ids(count: int) -> list[str]:
    """Ids of what is made together: UUIDs of version 7 (RFC 9562 section 5.7), in ascending order.

    They stand together in an index, where a million that are scattered cost several times as much.
    """
    head, digits = f'{time.time_ns() // 1_000_000:012x}7', os.urandom(9 * count).hex()
    return sorted([f'{head}{digits[at:at + 3]}8{digits[at + 3:at + 18]}' for at in range(0, 18 * count, 18)])


def utcnow() -> datetime:
    return datetime.now(timezone.utc)
