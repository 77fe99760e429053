"""Keys: as DNSKEY and DS records, imported, and in sets."""

from __future__ import annotations

import base64
import pathlib
import subprocess
from datetime import datetime, timezone

import dns.dnssec
import dns.name
import dns.rdata
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from designate_pool.errors import InvalidField
from designate_pool.model import KeyRole, KeyState, SigningKey
from designate_pool.signing import keys
from tests.unit.signing.zones import APEX


def test_the_example_of_rfc_6605() -> None:
    """ECDSA P-256 in RFC 6605 section 6.1: the private key, its DNSKEY and DS records."""
    text = ('Private-key-format: v1.2\nAlgorithm: 13 (ECDSAP256SHA256)\n'
            'PrivateKey: GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=\n')
    public, private = keys.read_key(text, KeyRole.KSK)
    assert keys.tag_of(public) == 55648 and keys.load(private, KeyRole.KSK).public == public
    assert keys.ds('example.net.', public).hex() == (
        'd960' '0d02' 'b4c8c1fe2e7477127b27115656ad6256f424625bf5c1e2770ce6d6e37df61d17')


@pytest.mark.parametrize(('algorithm', 'digest'), [(13, 2), (13, 4), (15, 2)])
def test_tag_and_ds_are_those_of_another_program(algorithm: int, digest: int) -> None:
    public, _ = keys.generate(KeyRole.KSK, algorithm)
    parsed = dns.rdata.from_wire('IN', 'DNSKEY', public, 0, len(public))
    assert keys.tag_of(public) == dns.dnssec.key_id(parsed)  # type: ignore[arg-type]
    ds = dns.dnssec.make_ds(dns.name.from_text(APEX), parsed, digest)  # type: ignore[arg-type]
    assert keys.ds(APEX, public, digest) == ds.to_wire()


@pytest.mark.parametrize(('algorithm', 'bits'), [('ECDSAP256SHA256', 256), ('ED25519', 256), ('RSASHA256', 2048)])
def test_what_bind_makes_is_read(algorithm: str, bits: int, tmp_path: object) -> None:
    made = subprocess.run(['dnssec-keygen', '-q', '-K', str(tmp_path), '-a', algorithm, '-b', str(bits), APEX],
                          capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    public, private = keys.read_key(open(f'{tmp_path}/{made}.private').read(), KeyRole.ZSK)
    assert base64.b64encode(public[4:]).decode() in open(f'{tmp_path}/{made}.key').read().replace(' ', '')
    assert made.endswith(f'+{keys.tag_of(public):05d}')
    signer = keys.load(private, KeyRole.ZSK)
    assert signer.public == public and signer.sign(b'data')


@pytest.mark.parametrize('algorithm', [8, 13, 15])
def test_what_is_written_is_read_by_bind_and_here(algorithm: int, tmp_path: pathlib.Path) -> None:
    public, private = keys.generate(KeyRole.KSK, algorithm)
    now = datetime(2026, 11, 29, 12, tzinfo=timezone.utc)
    key = SigningKey('1', KeyRole.KSK, algorithm, keys.tag_of(public), public, KeyState.RETIRING, publish_at=now,
                     active_at=now, retire_at=now)
    name, public_text, private_text = keys.bind_files(APEX, key, private)
    (tmp_path / f'{name}.key').write_text(public_text)
    (tmp_path / f'{name}.private').write_text(private_text)
    told = subprocess.run(['dnssec-settime', '-u', '-p', 'all', str(tmp_path / name)], capture_output=True, text=True,
                          timeout=60, check=True).stdout
    assert f'Inactive: {int(now.timestamp())}' in told and 'Delete: UNSET' in told
    (tmp_path / 'zone').write_text(f'{APEX} 60 SOA a. b. 1 1 1 1 1\n{APEX} 60 NS a.\n{public_text}')
    subprocess.run(['dnssec-signzone', '-z', '-o', APEX, '-d', str(tmp_path), 'zone', str(tmp_path / name)],
                   cwd=tmp_path, capture_output=True, timeout=60, check=True)
    assert keys.read_dnskey(f'; This is a key\n{public_text}') == (APEX, public)
    assert keys.read_key(private_text, KeyRole.KSK) == (public, private)
    read = keys.read_times(private_text, now)
    assert read is not None and (read.state, read.retire_at, read.active_at) == (KeyState.RETIRING, now, now)


@pytest.mark.parametrize(('times', 'state'), [
    ('', KeyState.ACTIVE), ('Publish: 20261128000000\n', KeyState.PUBLISHED),
    ('Publish: 20261128000000\nActivate: 20261201000000\n', KeyState.PUBLISHED),
    ('Publish: 20261128000000\nActivate: 20261128000000\nDelete: 20361128000000', KeyState.ACTIVE),
    ('Publish: 20261201000000', None), ('Publish: 20261101000000\nDelete: 20261102000000', None)])
def test_the_times_of_bind_tell_the_state_of_a_key(times: str, state: KeyState | None) -> None:
    key = keys.read_times(times, datetime(2026, 11, 29, tzinfo=timezone.utc))
    assert (None if key is None else key.state) == state


def test_pem_is_read() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    public, private = keys.read_key(text, KeyRole.CSK)
    assert (public[:4], keys.load(private, KeyRole.CSK).algorithm) == (bytes((1, 1, 3, 13)), 13)


@pytest.mark.parametrize('text', ['', 'Algorithm: 13', 'Algorithm: 13 (X)\nPrivateKey: ?', '-----BEGIN X-----\n',
                                  'Algorithm: x', 'Algorithm: 8\nModulus: AA=='])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidField, match='neither PEM without a password'):
        keys.read_key(text, KeyRole.KSK)


@pytest.mark.parametrize(('text', 'why'), [
    ('Algorithm: 7 (NSEC3RSASHA1)\nModulus: AA==', 'SHA-1'), ('Algorithm: 5 (RSASHA1)', 'SHA-1'),
    ('Algorithm: 14 (ECDSAP384SHA384)\nPrivateKey: AA==', 'algorithm 14')])
def test_algorithms_that_are_no_longer_used_are_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidField, match=why):
        keys.read_key(text, KeyRole.KSK)


def test_keys_that_are_too_short_or_of_another_curve_are_refused() -> None:
    for key, why in ((rsa.generate_private_key(65537, 1024), '2048 to 4096 bits, and this one has 1024'),
                     (ec.generate_private_key(ec.SECP384R1()), 'no key of RSA')):
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()  # type: ignore
        with pytest.raises(InvalidField, match=why):
            keys.read_key(text, KeyRole.KSK)
    with pytest.raises(InvalidField, match='13'):
        keys.generate(KeyRole.KSK, 14)


def test_an_error_does_not_hold_the_key() -> None:
    secret = base64.b64encode(bytes(32)).decode()  # 0 is no private key
    with pytest.raises(InvalidField) as raised:
        keys.read_key(f'Algorithm: 13\nPrivateKey: {secret}\n', KeyRole.KSK)
    assert secret not in str(raised.value) and raised.value.__cause__ is None


def test_a_tag_that_is_in_use_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    tags = iter([1, 1, 2])
    monkeypatch.setattr(keys, 'tag_of', lambda wire: next(tags))
    keys.generate(KeyRole.ZSK, 13, {1})
    assert list(tags) == []


def key(role: KeyRole, state: KeyState) -> SigningKey:
    public, _ = keys.generate(role)
    return SigningKey(f'{role} {state}', role, 13, keys.tag_of(public), public, state)


@pytest.mark.parametrize(('held', 'published', 'key_signers', 'zone_signers', 'offered'), [
    # Turned on: a zone is signed before there is anything in caches.
    ('KSK published, ZSK active', 'KSK published, ZSK active', 'KSK published', 'ZSK active', ''),
    ('CSK published', 'CSK published', 'CSK published', 'CSK published', ''),
    # A ZSK is published before it signs.
    ('KSK active, ZSK active, ZSK published, ZSK made', 'KSK active, ZSK active, ZSK published', 'KSK active',
     'ZSK active', 'KSK active'),
    ('KSK active, ZSK active, ZSK retiring, ZSK removed', 'KSK active, ZSK active, ZSK retiring', 'KSK active',
     'ZSK active', 'KSK active'),
    # Two KSKs sign; the parent is to have the DS of the new one once it is ready.
    ('KSK active, KSK published, ZSK active', 'KSK active, KSK published, ZSK active', 'KSK active, KSK published',
     'ZSK active', 'KSK active'),
    ('KSK active, KSK ready, ZSK active', 'KSK active, KSK ready, ZSK active', 'KSK active, KSK ready', 'ZSK active',
     'KSK ready'),
    ('CSK active, CSK ds-seen', 'CSK active, CSK ds-seen', 'CSK active, CSK ds-seen', 'CSK active', 'CSK ds-seen'),
])
def test_what_keys_do_in_their_states(held: str, published: str, key_signers: str, zone_signers: str,
                                      offered: str) -> None:
    every = [key(KeyRole(role), KeyState(state)) for role, state in (one.split() for one in held.split(', '))]
    of_text = {one.id: one for one in every}
    found = keys.key_set(APEX, every, {one.id: one for one in every}, 3600)  # type: ignore[misc]
    names = {one.public: one.id for one in every}

    def told(some: object) -> str:
        return ', '.join(one.id for one in some)  # type: ignore[attr-defined]

    assert ', '.join(names[public] for public in found.dnskeys) == published
    assert (told(found.key_signers), told(found.zone_signers)) == (key_signers, zone_signers)
    assert list(found.cds) == [keys.ds(APEX, of_text[one].public) for one in offered.split(', ') if one]
    assert ', '.join(names[public] for public in found.cdnskeys) == offered


def test_a_ds_that_is_to_go() -> None:
    held = [key(KeyRole.CSK, KeyState.ACTIVE)]
    signers = {held[0].id: keys.load(keys.generate(KeyRole.CSK)[1], KeyRole.CSK)}
    gone = keys.key_set(APEX, held, signers, 1, is_leaving=True)
    assert (gone.cds, gone.cdnskeys) == ([bytes.fromhex('0000000000')], [bytes.fromhex('00000300' '00')])
