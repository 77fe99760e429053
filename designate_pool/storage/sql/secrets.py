"""Secrets in the database: in clear text, or encrypted if keys are configured.

An encrypted text begins with a prefix that Base64 cannot begin with, so both kinds of rows can be read, whatever is
configured now.  The first key encrypts; each of them decrypts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from designate_pool.errors import InvalidField, UnreadableSecret

MARK = 'fernet:'
#: Length of the column.
LONGEST = 1024


class SecretCipher:
    """Encrypts secrets for the database, and decrypts them.

    :param keys: keys of ``cryptography.fernet.Fernet``; none to store secrets in clear text
    :param option: that names the file of the keys, for errors
    """

    def __init__(self, keys: Sequence[str] = (), option: str = '[database] secrets_key_file') -> None:
        self._option = option
        self._fernet: Any = None
        if keys:
            self._fernet = MultiFernet([Fernet(key) for key in keys])

    def seal(self, secret: str) -> str:
        """*secret* as it is stored."""
        if self._fernet is None:
            return secret
        sealed = MARK + self._fernet.encrypt(secret.encode()).decode()
        if len(sealed) > LONGEST:
            raise InvalidField(field='secret', why='it is too long to be kept encrypted')
        return sealed

    def reveal(self, written: str, name: str) -> str:
        """The secret that is stored as *written*.

        :param name: the name of its TSIG key, for the error
        :raises UnreadableSecret: when none of the keys decrypts it
        """
        if not written.startswith(MARK):
            return written
        if self._fernet is None:
            raise UnreadableSecret(name=name, why=f'it is encrypted, and {self._option} is not set here')
        try:
            return str(self._fernet.decrypt(written.removeprefix(MARK).encode()).decode())
        except InvalidToken:
            raise UnreadableSecret(name=name, why=f'no key in {self._option} here decrypts it') from None


def of(tx: sa.Connection) -> SecretCipher:
    """The cipher of the storage that this transaction belongs to."""
    cipher: SecretCipher = tx.get_execution_options()['secrets']
    return cipher
