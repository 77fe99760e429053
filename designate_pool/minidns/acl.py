"""Who may query: the pool's servers, by TSIG key or, for those without one, by address; and TSIG grants, by key."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping

import dns.name
import dns.tsig

from designate_pool.errors import InvalidField
from designate_pool.model import LAST_STAGE


@dataclasses.dataclass(frozen=True)
class AllowedPeer:
    """A server that may query MiniDNS and that MiniDNS notifies and polls.

    :ivar id: the server's id, ``ID#N`` for the address number N at which it is verified, or ``address:port`` for a
        destination that is not configured
    :ivar label: its name in logs and metrics
    :ivar addresses: the IP addresses of its host, as the operating system writes them
    :ivar trouble: why it has no addresses, in words
    :ivar stage: in which it gets new versions; see :mod:`designate_pool.model.freezes`
    """

    id: str
    label: str
    addresses: tuple[str, ...]
    port: int
    key: dns.tsig.Key | None = None
    trouble: str | None = None
    stage: int = LAST_STAGE

    @functools.cached_property
    def server_id(self) -> str:
        """The id of the server that this one is, or is an address of."""
        return self.id.partition('#')[0]

    @functools.cached_property
    def metrics_label(self) -> str:
        """The label; one for all servers that are not configured, as their number is not limited."""
        return 'unknown' if ':' in self.id else self.label


@dataclasses.dataclass(frozen=True, slots=True)
class Acl:
    """The servers that may query.

    :ivar peers_by_key: by the name of the TSIG key: the key, and the servers that have it
    :ivar peers_by_address: all servers; those without a key need not sign
    """

    peers_by_key: Mapping[dns.name.Name, tuple[dns.tsig.Key, tuple[AllowedPeer, ...]]]
    peers_by_address: Mapping[str, tuple[AllowedPeer, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class TsigGrant:
    """A TSIG key given out over the API, and what it may transfer: the zones of a pool, or one zone.

    :ivar pool_name: None for the key of one zone
    :ivar domain_id: None for the key of a pool; both are None when the pool or domain is gone
    """

    key: dns.tsig.Key
    pool_name: str | None = None
    domain_id: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """A query that is refused.

    :ivar key: the name of the key in the query, empty for none
    :ivar kind: refusals of one kind are logged together; their :attr:`why` may differ in numbers
    :ivar why: in words, without the final dot
    """

    answer: bytes
    address: str
    key: str
    kind: str
    why: str


def make_acl(peers: Iterable[AllowedPeer]) -> Acl:
    """The access list of *peers*.

    :raises InvalidField: when two keys of one name differ
    """
    by_key: dict[dns.name.Name, tuple[dns.tsig.Key, tuple[AllowedPeer, ...]]] = {}
    by_address: dict[str, tuple[AllowedPeer, ...]] = {}
    for peer in peers:
        for address in peer.addresses:
            by_address[address] = (*by_address.get(address, ()), peer)
        if peer.key is not None:
            key, peers_with_key = by_key.get(peer.key.name, (peer.key, ()))
            if key != peer.key:
                raise InvalidField(field='tsig_key', why=f'{peer.key.name} has another secret or algorithm at '
                                                         f'{peer.label} than at {peers_with_key[0].label}')
            by_key[key.name] = key, (*peers_with_key, peer)
    return Acl(by_key, by_address)
