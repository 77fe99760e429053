"""Keys of zones in a PKCS #11 token, which signs with them and does not give them away.

The module is initialised without locks of its own, so that one call at a time is under way in a process (PKCS #11 3.0
section 5.4).  What fails closes all sessions, and the next call opens the token again: it may have been restarted.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import threading
import time
import urllib.parse
from collections.abc import Callable, Collection
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from dns.dnssecalgs.rsa import PublicRSASHA256

from designate_pool.errors import BadConfiguration, KeyUnavailable
from designate_pool.logs import OutageLog
from designate_pool.model import KeyRole, SigningKey, new_id
from designate_pool.settings import CentralSettings
from designate_pool.signing import keys

LOG = logging.getLogger(__name__)
#: Seconds that a call waits for the one before.
PATIENCE = 10.0
#: Seconds after which the transaction that a key was made in has ended.
PENDING = 600.0
_LOCK = threading.Lock()
#: The session that is open, and the private keys that were found by it, by id.
_OPEN: dict[tuple[str, str], tuple[Any, dict[bytes, Any]]] = {}
#: By algorithm: the mechanisms that make a key and sign, and the kind of key and the curve (RFC 5480, RFC 8410).
_MECHANISMS = {keys.RSASHA256: ('RSA_PKCS_KEY_PAIR_GEN', 'SHA256_RSA_PKCS', 'RSA', ''),
               keys.ECDSAP256SHA256: ('EC_KEY_PAIR_GEN', 'ECDSA', 'EC', '06082a8648ce3d030107'),
               keys.ED25519: ('EC_EDWARDS_KEY_PAIR_GEN', 'EDDSA', 'EC_EDWARDS', '130c656477617264733235353139')}


class KeyToken:
    """A token, which is opened when it is first used.

    :param compute: calls the module, as :meth:`designate_pool.concurrency.Runtime.compute` does
    :raises BadConfiguration: when the library is not installed
    """

    def __init__(self, settings: CentralSettings, compute: Callable[..., Any]) -> None:
        try:
            import pkcs11
        except ImportError as error:
            raise BadConfiguration(count=1, listing=(
                f'\n  [service:central] pkcs11_module: it needs more packages ({error}); install them with pip install '
                "'designate-pool[pkcs11]'")) from None
        self._library: Any = pkcs11
        self._place = settings.pkcs11_module or '', settings.pkcs11_token or ''
        self._pin = settings.pkcs11_pin
        self._compute = compute
        self._wrong_pin: Exception | None = None
        #: When each key was made here of which it is not known yet that it is stored, by id.
        self.made: dict[str, float] = {}
        self._outages = OutageLog(LOG, '%s cannot be used: %s', '%s can be used again')
        #: The roles of keys that are made in it.
        self.roles: Collection[KeyRole] = {'none': (), 'ksk': (KeyRole.KSK, KeyRole.CSK),
                                           'all': tuple(KeyRole)}[settings.pkcs11_keys]

    def uri_of(self, key_id: str) -> str:
        """What names a key in this token (RFC 7512)."""
        octets = ''.join(f'%{octet:02X}' for octet in bytes.fromhex(key_id))
        return f'pkcs11:token={urllib.parse.quote(self._place[1], safe="")};id={octets};type=private'

    def check(self) -> None:
        """Open it.

        :raises KeyUnavailable: when it cannot be used; likewise the others
        """
        self._call(self._name, lambda session, found: None)

    def generate(self, zone: str, role: KeyRole, algorithm: int, tags: Collection[int]) -> SigningKey:
        """Make a key, whose tag is none of *tags*."""
        while True:
            key_id = new_id()
            self.made[key_id] = time.monotonic()
            dnskey = keys.dnskey(role, algorithm, self._call(self._name, self._generate, bytes.fromhex(key_id),
                                                             f'{zone} {role}', algorithm))
            if (tag := keys.tag_of(dnskey)) not in tags:
                return SigningKey(key_id, role, algorithm, tag, dnskey, token_uri=self.uri_of(key_id))
            self.destroy(key_id)

    def sign(self, name: str, key: SigningKey, data: bytes) -> bytes:
        """The signature with a key.

        :param name: of the key, for the error
        """
        return self._call(name, self._sign, bytes.fromhex(key.id), key.algorithm, data)

    def destroy(self, key_id: str) -> None:
        """Delete a key, if the token has it."""
        self._call(self._name, self._destroy, bytes.fromhex(key_id))

    @property
    def _name(self) -> str:
        return f'The PKCS #11 token {self._place[1]}'

    def _call(self, name: str, work: Callable[..., Any], *args: Any) -> Any:
        if not _LOCK.acquire(timeout=PATIENCE):
            why = f'a call before this one has not ended in {PATIENCE:g} s'
        else:
            try:
                result = self._compute(self._repeated, work, *args)
                self._outages.ended(name, key=name)
                return result
            except self._library.PKCS11Error as error:
                why = ': '.join(filter(None, (type(error).__name__, str(error))))
                if self._wrong_pin is not None:
                    why += '; lest it is locked, pkcs11_pin is not tried again before Central is restarted'
            finally:
                _LOCK.release()
        self._outages.failed(name, why, key=name)
        raise KeyUnavailable(name=name, why=why, is_logged=True)

    def _repeated(self, work: Callable[..., Any], *args: Any) -> Any:
        """Do it with the session that is open, and if that fails, with a new one."""
        is_new = self._place not in _OPEN
        try:
            if is_new:
                _OPEN[self._place] = self._session(), {}
            return work(*_OPEN[self._place], *args)
        except self._library.PKCS11Error:
            _OPEN.clear()
            with contextlib.suppress(self._library.PKCS11Error):
                self._library.lib(self._place[0]).finalize()
            if is_new:
                raise
        return self._repeated(work, *args)

    def _session(self) -> Any:
        if self._wrong_pin is not None:
            raise self._wrong_pin
        token = self._library.lib(self._place[0]).get_token(token_label=self._place[1])
        try:
            return token.open(rw=True, user_pin=self._pin)
        except self._library.PKCS11Error as error:
            if type(error).__name__.startswith('Pin'):
                self._wrong_pin = error
            raise

    def _generate(self, session: Any, found: dict[bytes, Any], key_id: bytes, label: str, algorithm: int) -> bytes:
        """Make a key; its public part as in a DNSKEY record."""
        library = self._library
        *mechanisms, kind, curve = _MECHANISMS[algorithm]
        present = session.token.slot.get_mechanisms()
        if lacking := [name for name in mechanisms if library.Mechanism[name] not in present]:
            raise library.MechanismInvalid(f'it has no {lacking[0]} for keys of algorithm {algorithm}')
        self._destroy(session, found, key_id)  # a try whose answer was lost may have made one
        options = {'id': key_id, 'label': label, 'store': True, 'mechanism': library.Mechanism[mechanisms[0]],
                   'capabilities': library.MechanismFlag.SIGN | library.MechanismFlag.VERIFY,
                   'private_template': {library.Attribute.SENSITIVE: True, library.Attribute.EXTRACTABLE: False}}
        if not curve:
            public, _ = session.generate_keypair(library.KeyType.RSA, keys.SHORTEST_RSA, **options)
            exponent, modulus = (int.from_bytes(public[attribute], 'big') for attribute in (
                library.Attribute.PUBLIC_EXPONENT, library.Attribute.MODULUS))
            return PublicRSASHA256(rsa.RSAPublicNumbers(exponent, modulus).public_key()).encode_key_bytes()
        public, _ = session.create_domain_parameters(library.KeyType[kind], {
            library.Attribute.EC_PARAMS: bytes.fromhex(curve)}, local=True).generate_keypair(**options)
        return bytes(public[library.Attribute.EC_POINT])[-keys.OCTETS[algorithm]:]

    def _sign(self, session: Any, found: dict[bytes, Any], key_id: bytes, algorithm: int, data: bytes) -> Any:
        if key_id not in found:
            found[key_id] = session.get_key(object_class=self._library.ObjectClass.PRIVATE_KEY, id=key_id)
        return found[key_id].sign(hashlib.sha256(data).digest() if algorithm == keys.ECDSAP256SHA256 else data,
                                  mechanism=self._library.Mechanism[_MECHANISMS[algorithm][1]])

    def _destroy(self, session: Any, found: dict[bytes, Any], key_id: bytes) -> None:
        found.pop(key_id, None)
        for part in list(session.get_objects({self._library.Attribute.ID: key_id})):
            part.destroy()


class TokenKey:
    """The signer with a key that is in a token.

    :param token: None where none is configured
    """

    def __init__(self, token: KeyToken | None, zone: str, key: SigningKey) -> None:
        self._token, self._key = token, key
        self.algorithm, self.tag = key.algorithm, key.tag
        self._name = f'The key {key.tag} of {zone}, {key.token_uri},'

    def sign(self, data: bytes) -> bytes:
        """Sign.

        :raises KeyUnavailable: when the token does not
        """
        if self._token is None or self._token.uri_of(self._key.id) != self._key.token_uri:
            raise KeyUnavailable(name=self._name, why='it is not in the token of [service:central] here')
        return self._token.sign(self._name, self._key, data)
