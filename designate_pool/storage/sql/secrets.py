"""Secrets in the database: in clear text, or encrypted if keys are configured.

They are encrypted by AES-256-GCM, each under a nonce of its own, and authenticated with the id of what they belong to,
so that none can be put in the place of another.  An encrypted text begins with a prefix that Base64 cannot begin with:
both kinds of rows can be read, whatever is configured now.  The first key encrypts; each of them decrypts.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Sequence

import sqlalchemy as sa

from designate_pool.errors import InvalidField, PoolError, UnreadableSecret

MARK = 'aes-256-gcm:'
#: Octets (NIST SP 800-38D section 8.2.2: chosen at random, they are enough for 2**32 secrets under one key).
_NONCE = 12


class SecretCipher:
    """Encrypts secrets for the database, and decrypts them.

    :param keys: of 32 octets each, in URL-safe Base64; none to store secrets in clear text
    :param option: that names the file of the keys, for errors
    """

    def __init__(self, keys: Sequence[str] = (), option: str = '[database] secrets_key_file') -> None:
        self._ciphers = []
        if keys:  # the library takes 7 MiB, which a program without keys saves
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._ciphers = [AESGCM(base64.urlsafe_b64decode(key)) for key in keys]
        self._option = option

    def seal(self, secret: str, owner_id: str) -> str:
        """The *secret* of what has the id *owner_id*, as it is stored."""
        if not self._ciphers:
            return secret
        nonce = os.urandom(_NONCE)
        sealed = nonce + self._ciphers[0].encrypt(nonce, secret.encode(), owner_id.encode())
        return MARK + base64.urlsafe_b64encode(sealed).decode()

    def reveal(self, written: str, owner_id: str, name: str = '') -> str:
        """The secret of *owner_id* that is stored as *written*.

        :param name: of the key whose secret it is, for the error, where it has one besides its id
        :raises UnreadableSecret: when none of the keys decrypts it
        """
        if not written.startswith(MARK):
            return written
        if not self._ciphers:
            raise UnreadableSecret(name=name or owner_id, why=f'it is encrypted, and {self._option} is not set here')
        from cryptography.exceptions import InvalidTag

        try:
            sealed = base64.b64decode(written.removeprefix(MARK), b'-_', validate=True)
        except binascii.Error:
            sealed = b''
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], owner_id.encode()).decode()
            except (InvalidTag, ValueError):
                pass  # ValueError: the text was cut
        raise UnreadableSecret(name=name or owner_id, why=f'no key in {self._option} here decrypts it')


def of(tx: sa.Connection) -> SecretCipher:
    """The cipher of the storage that this transaction belongs to."""
    cipher: SecretCipher = tx.get_execution_options()['secrets']
    return cipher


def sealed(column: sa.Column[str], cipher: SecretCipher, secret: str, owner_id: str) -> str:
    """A secret as it is stored in *column*.

    :raises InvalidField: when it has no room there
    """
    text, most = cipher.seal(secret, owner_id), column.type.length  # type: ignore[attr-defined]
    if most is not None and len(text) > most:
        raise InvalidField(field='secret', why='it is too long to be kept encrypted')
    return text


def rotate(tx: sa.Connection, column: sa.Column[str], cipher: SecretCipher, after_id: str,
           limit: int) -> list[tuple[str, PoolError | None]]:
    """Encrypt some secrets of *column* again: their ids, in order after *after_id*, and why one was left as it is."""
    row_id, outcomes = column.table.c.id, list[tuple[str, PoolError | None]]()
    rows = tx.execute(sa.select(row_id, column).where(row_id > after_id, column.is_not(None))
                      .order_by(row_id).limit(limit).with_for_update()).tuples().all()
    for owner_id, written in rows:
        try:
            text = sealed(column, cipher, cipher.reveal(written, owner_id), owner_id)
        except PoolError as error:
            outcomes.append((owner_id, error))
        else:
            tx.execute(sa.update(column.table).where(row_id == owner_id).values({column: text}))
            outcomes.append((owner_id, None))
    return outcomes
