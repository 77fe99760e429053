"""Secrets in the database: in clear, or encrypted where the configuration has keys for that.

A text that is encrypted begins with a word that no Base64 begins with, so that rows of both kinds can be read, whatever
is configured now.  The first key encrypts; any of them decrypts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from designate_pool.errors import BadConfiguration, InvalidField, UnreadableSecret

MARK = 'fernet:'
#: Characters that the column takes.
LONGEST = 1024


class SecretCipher:
    """
    :param keys: as ``cryptography.fernet.Fernet`` takes them; none to keep secrets in clear
    :raises BadConfiguration: when there are keys, and the library is not installed
    """

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._fernet: Any = None
        if keys:
            try:
                from cryptography.fernet import Fernet, MultiFernet
            except ImportError:
                raise BadConfiguration(count=1, listing='\n  [database] secrets_key_file: it needs the library '
                                       "cryptography: pip install 'designate-pool[secrets]'") from None
            self._fernet = MultiFernet([Fernet(key) for key in keys])

    @property
    def encrypts(self) -> bool:
        return self._fernet is not None

    def seal(self, secret: str) -> str:
        """*secret* as it is written."""
        if self._fernet is None:
            return secret
        sealed = MARK + self._fernet.encrypt(secret.encode()).decode()
        if len(sealed) > LONGEST:
            raise InvalidField(field='secret', why='it is too long to be kept encrypted')
        return sealed

    def reveal(self, written: str, name: str) -> str:
        """What was written as *written*.

        :param name: of the key that it is the secret of
        :raises UnreadableSecret: when none of our keys decrypts it
        """
        if not written.startswith(MARK):
            return written
        if self._fernet is None:
            raise UnreadableSecret(name=name, why='it is encrypted, and [database] secrets_key_file is not set here')
        from cryptography.fernet import InvalidToken

        try:
            return str(self._fernet.decrypt(written.removeprefix(MARK).encode()).decode())
        except InvalidToken:
            raise UnreadableSecret(name=name, why='no key in [database] secrets_key_file here decrypts it') from None


def of(tx: sa.Connection) -> SecretCipher:
    """What the storage of this transaction was made with."""
    found: SecretCipher = tx.get_execution_options()['secrets']
    return found
