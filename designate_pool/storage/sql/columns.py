"""Column types that mean the same on SQLite, MariaDB and PostgreSQL, and texts that all of them take.

The migrations use them too, so a type must never change; a new need gets a new function.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql


class Time(sa.types.TypeDecorator[datetime]):
    """An aware datetime in Python, UTC to the microsecond in the database."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        if dialect.name in ('mysql', 'mariadb'):
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(sa.DateTime())

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else value.astimezone(timezone.utc).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=timezone.utc)


def ascii_text(length: int) -> sa.types.TypeEngine[str]:
    """ASCII, compared and sorted octet by octet."""
    text = sa.String(length).with_variant(mysql.VARCHAR(length, charset='ascii', collation='ascii_bin'),
                                          'mysql', 'mariadb')
    return text.with_variant(sa.String(length, collation='C'), 'postgresql')


def exact_text(length: int) -> sa.types.TypeEngine[str]:
    """Unicode, where upper and lower case differ, and blanks at the end count."""
    return sa.String(length).with_variant(mysql.VARCHAR(length, charset='utf8mb4', collation='utf8mb4_nopad_bin'),
                                          'mysql', 'mariadb')


def identifier() -> sa.types.TypeEngine[str]:
    """32 hexadecimal digits."""
    text = sa.CHAR(32).with_variant(mysql.CHAR(32, charset='ascii', collation='ascii_bin'), 'mysql', 'mariadb')
    return text.with_variant(sa.CHAR(32, collation='C'), 'postgresql')


def deletion_mark() -> sa.types.TypeEngine[str]:
    """'0' while the row is live, then its id; not CHAR, which PostgreSQL pads with blanks."""
    return ascii_text(32)


def domain_name() -> sa.types.TypeEngine[str]:
    """A name of up to 255 octets: up to 1004 characters if each is escaped as a backslash and three digits."""
    return ascii_text(1010)


def long_text() -> sa.types.TypeEngine[str]:
    """Long text: up to 16 MiB on MariaDB, where TEXT would hold 64 KiB."""
    return sa.Text().with_variant(mysql.MEDIUMTEXT(charset='utf8mb4'), 'mysql', 'mariadb')


def rdata() -> sa.types.TypeEngine[bytes]:
    """Rdata in wire form, at most 65535 octets (RFC 1035 section 3.2.1)."""
    return sa.LargeBinary(65535)


def chain_key() -> sa.types.TypeEngine[bytes]:
    """What names are ordered by in a signed zone (RFC 4034 section 6.1), compared octet by octet."""
    return sa.LargeBinary(512).with_variant(mysql.VARBINARY(512), 'mysql', 'mariadb')


def piece() -> sa.types.TypeEngine[bytes]:
    """A piece of a file, of up to 16 MiB."""
    return sa.LargeBinary().with_variant(mysql.MEDIUMBLOB(), 'mysql', 'mariadb')


def storable(text: str, longest: int) -> str:
    """The beginning of *text*, which a server or driver may have said, with what some database does not take replaced:
    NUL, and halves of surrogate pairs, which JSON can contain."""
    return text[:longest].replace('\0', '?').encode('utf-8', 'replace').decode('utf-8')
