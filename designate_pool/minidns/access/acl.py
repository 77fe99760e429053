"""Who may ask: the pool's servers, by TSIG key or, for those without one, by address; and visitors, by key."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import dns.name
import dns.tsig

from designate_pool.errors import InvalidField
from designate_pool.model import ZoneHead


@dataclasses.dataclass(frozen=True, slots=True)
class AllowedPeer:
    """A server as MiniDNS meets it on the network.

    :ivar id: the server's id, or ``address:port`` where a request named one that is not configured
    :ivar label: what people read
    :ivar addresses: what its host stands for, IP addresses as the operating system writes them
    :ivar port: where it answers DNS
    :ivar trouble: in words, why there are no addresses
    """

    id: str
    label: str
    addresses: tuple[str, ...]
    port: int
    key: dns.tsig.Key | None = None
    trouble: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Acl:
    """Everybody who may ask, found by what a query shows.

    :ivar by_address: those without a key, who need not sign
    :ivar signing: those with one, by address, to say who it is that does not sign rightly
    """

    by_key: Mapping[dns.name.Name, tuple[dns.tsig.Key, tuple[AllowedPeer, ...]]]
    by_address: Mapping[str, tuple[AllowedPeer, ...]]
    signing: Mapping[str, tuple[AllowedPeer, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class TsigGrant:
    """Who may have the zones of a pool, or one zone, for a TSIG key that was given out.

    :ivar pool_name: None for the key of one zone
    :ivar domain_id: None for the key of a pool; both are None when that is gone
    """

    key: dns.tsig.Key
    pool_name: str | None = None
    domain_id: str | None = None

    def may_have(self, head: ZoneHead) -> bool:
        return head.domain_id == self.domain_id or head.pool_name == self.pool_name


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Somebody is not let in.

    :ivar answer: what is sent back
    :ivar key: the name of the key in the query, empty for none
    :ivar kind: which refusals are the same; :attr:`why` may hold numbers that differ
    :ivar why: in words, without the final dot
    """

    answer: bytes
    address: str
    key: str
    kind: str
    why: str


def guests(peers: Iterable[AllowedPeer]) -> Acl:
    """The guest list of *peers*.

    :raises InvalidField: when two keys of one name differ
    """
    by_key: dict[dns.name.Name, tuple[dns.tsig.Key, tuple[AllowedPeer, ...]]] = {}
    by_address: dict[str, tuple[AllowedPeer, ...]] = {}
    signing: dict[str, tuple[AllowedPeer, ...]] = {}
    for peer in peers:
        at = by_address if peer.key is None else signing
        for address in peer.addresses:
            at[address] = (*at.get(address, ()), peer)
        if peer.key is None:
            continue
        key, others = by_key.get(peer.key.name, (peer.key, ()))
        if key != peer.key:
            raise InvalidField(field='tsig_key', why=f'{peer.key.name} has another secret or algorithm at '
                                                     f'{peer.label} than at {others[0].label}')
        by_key[key.name] = (key, (*others, peer))
    return Acl(by_key, by_address, signing)
