"""Enums for states and results; ids and times."""

from __future__ import annotations

import enum
import os
import time
import uuid
from collections.abc import Sequence
from datetime import datetime, timezone


class Word(str, enum.Enum):
    """An enum whose members are texts."""

    # Enum.__hash__ is a Python function, which makes every dict lookup slower, and differs from that of an equal text.
    __hash__ = str.__hash__

    def __str__(self) -> str:
        return self.value


class Action(Word):
    """What is due for a domain, or what a row of pool_manager_status does."""

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
    """The status of a domain or record."""

    PENDING = 'PENDING'
    ACTIVE = 'ACTIVE'
    ERROR = 'ERROR'
    DELETED = 'DELETED'


class Outcome(Word):
    """How an operation ended, on one server or in the pool.  None in place of it means that it has not ended."""

    SUCCESS = 'SUCCESS'
    ERROR = 'ERROR'


class ChangeKind(Word):
    """What a version of a zone came from.

    :cvar API: a request of a user
    :cvar PLAN: a plan, or another program that keeps zones as its sources have them
    :cvar UNDO: the return to an older version
    :cvar REFRESH: the master of a secondary zone
    :cvar POOL: the name servers of its pool
    :cvar SERIAL: a server that was ahead of the zone; only the serial is new
    :cvar OWNER: another project got the zone; the serial is the same
    :cvar SIGNING: the signer: signatures were renewed, or keys have changed
    :cvar RELEASE: what waited for the end of a freeze was served before; the serial is the same
    """

    CREATE = 'CREATE'
    DELETE = 'DELETE'
    RESTORE = 'RESTORE'
    API = 'API'
    IMPORT = 'IMPORT'
    PLAN = 'PLAN'
    UNDO = 'UNDO'
    REFRESH = 'REFRESH'
    SINK = 'SINK'
    TAKEOVER = 'TAKEOVER'
    POOL = 'POOL'
    MOVE = 'MOVE'
    SERIAL = 'SERIAL'
    OWNER = 'OWNER'
    RELEASE = 'RELEASE'
    SIGNING = 'SIGNING'


class ServerState(Word):
    """The state of a server in its pool."""

    JOINING = 'joining'
    ACTIVE = 'active'
    MAINTENANCE = 'maintenance'
    DRAINING = 'draining'
    REMOVED = 'removed'


class Answer(Word):
    """A server's answer to the query for a zone's serial."""

    SERIAL = 'SERIAL'
    NO_ZONE = 'NO_ZONE'
    NOT_AUTH = 'NOT_AUTH'
    TIMEOUT = 'TIMEOUT'
    BAD = 'BAD'


class Reason(Word):
    """Why a call, a poll or an operation failed: a code for programs, stored beside the sentence for people.

    An unknown code, from a newer version, is read as OTHER.

    :cvar UNREACHABLE: nothing can be sent to the server, or nothing listens on its port
    :cvar REFUSED: the server refuses a query or a transfer (RCODE REFUSED)
    :cvar BAD_KEY: the server does not accept the key, or has another secret for it
    :cvar BAD_TIME: the clocks differ too much for signed messages
    :cvar NOT_SIGNED: the answer has no signature, or a wrong one
    :cvar BAD_TLS: TLS with the server fails, or its certificate is wrong
    :cvar NO_ACCESS: permission denied for a local socket or file
    :cvar NO_ZONE: the server does not have the zone
    :cvar NOT_AUTH: the server answers without authority for the zone
    :cvar NOT_PRIMARY: the server is not a primary of the zone, so it does not accept updates of it
    :cvar STALE: the server serves an older serial than it should
    :cvar DIVERGED: the server serves other contents under the serial, or a serial that was never issued
    :cvar SIGNS: the server signs the zone, so its serials and contents are its own
    :cvar UNCHECKED: the contents on the server cannot be compared, or have to be before its serial counts
    :cvar CONFLICT: the server has a zone of this name that does not belong to the pool
    :cvar NO_PRIMARIES: the server's section does not say from where it should transfer zones
    :cvar NO_RETRANSFER: the driver cannot make the server transfer a zone again
    :cvar NOT_CONFIGURED: the server's own configuration lacks a view, pattern, template or key that its section names
    :cvar NO_ZONE_CHANGES: the server's own configuration does not allow zones to be added or removed
    :cvar BUSY: the server's own configuration is being changed by someone else
    :cvar POLICY: the server's policy blocks changes
    :cvar PARKED: a plan waits for approval
    """

    UNREACHABLE = 'UNREACHABLE'
    TIMEOUT = 'TIMEOUT'
    REFUSED = 'REFUSED'
    UPDATE_REFUSED = 'UPDATE_REFUSED'
    BAD_KEY = 'BAD_KEY'
    BAD_TIME = 'BAD_TIME'
    NOT_SIGNED = 'NOT_SIGNED'
    BAD_TLS = 'BAD_TLS'
    NO_ACCESS = 'NO_ACCESS'
    NO_ZONE = 'NO_ZONE'
    NOT_AUTH = 'NOT_AUTH'
    NOT_PRIMARY = 'NOT_PRIMARY'
    SERVFAIL = 'SERVFAIL'
    STALE = 'STALE'
    DIVERGED = 'DIVERGED'
    SIGNS = 'SIGNS'
    UNCHECKED = 'UNCHECKED'
    CONFLICT = 'CONFLICT'
    NO_PRIMARIES = 'NO_PRIMARIES'
    NO_RETRANSFER = 'NO_RETRANSFER'
    NOT_CONFIGURED = 'NOT_CONFIGURED'
    NO_ZONE_CHANGES = 'NO_ZONE_CHANGES'
    BUSY = 'BUSY'
    POLICY = 'POLICY'
    PARKED = 'PARKED'
    OTHER = 'OTHER'

    @classmethod
    def of(cls, answer: Answer) -> Reason:
        """The reason of a failed poll with this answer."""
        return cls.STALE if answer is Answer.SERIAL else cls(answer.value)

    @classmethod
    def _missing_(cls, value: object) -> Reason:
        return cls.OTHER


def new_id() -> str:
    """A random id: 32 hexadecimal digits."""
    return uuid.uuid4().hex


def dashed(identifier: str) -> str:
    """An id, 32 digits, as a UUID is written (RFC 9562 section 4)."""
    return f'{identifier[:8]}-{identifier[8:12]}-{identifier[12:16]}-{identifier[16:20]}-{identifier[20:]}'


def new_ids(count: int) -> list[str]:
    """Ids for rows that are inserted together: UUIDs of version 7 (RFC 9562 section 5.7), in ascending order.

    They are neighbours in an index; inserting a million random ids takes several times as long.
    """
    head, digits = f'{time.time_ns() // 1_000_000:012x}7', os.urandom(9 * count).hex()
    return sorted([f'{head}{digits[at:at + 3]}8{digits[at + 3:at + 18]}' for at in range(0, 18 * count, 18)])


def some(texts: Sequence[str], most: int) -> str:
    """The first *most* of *texts* with commas between, and how many more there are."""
    return ', '.join(texts[:most]) + (f' and {len(texts) - most} more' if len(texts) > most else '')


def utcnow() -> datetime:
    """This host's time, aware and in UTC; rows are dated with the database's time."""
    return datetime.now(timezone.utc)
