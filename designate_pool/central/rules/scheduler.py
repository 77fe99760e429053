"""Which pool a new domain goes to: the filters of ``[service:central] scheduler_filters``, as Designate has them.

Each filter keeps some of the pools that the one before has kept; the first keeps some of all pools that can take
domains: they have name servers, and servers.  The default pool takes part without servers too, and so does one that an
attribute names: its domains are PENDING until it has servers.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence

from designate_pool.central.validation.requests import NewDomain
from designate_pool.errors import NotFound, Refused
from designate_pool.model import Pool
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import pools

#: The attribute of a domain that names a pool.
POOL_ID = 'pool_id'
_TRUE, _FALSE = ('1', 't', 'true', 'on', 'y', 'yes'), ('0', 'f', 'false', 'off', 'n', 'no')
#: The filters unless the configuration names others.
DEFAULT_FILTERS = ('pool_id_attribute', 'attribute', 'in_doubt_default_pool', 'random')


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """The values that the filters use.

    :ivar attributes: of the domain, without the name of a pool
    :ivar pool: the pool that its attributes name by id; None if they name none
    :ivar chance: a number from 0 to 1, without 1
    """

    attributes: Mapping[str, str]
    pool: Pool | None
    default: Pool
    chance: float


Pools = Sequence[Pool]


def _attribute(candidates: Pools, wish: Wish) -> Pools:
    """Keep pools with all attributes of the domain, and those without attributes."""
    return [pool for pool in candidates if _matches(json.loads(pool.attributes or '{}'), wish.attributes)]


def _matches(offered: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return not offered or all(name in offered and _value(offered[name]) == _value(value)
                              for name, value in wanted.items())


def _value(text: str) -> str | bool:
    """Words for true and false are alike: ``yes`` is ``True``."""
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else text


#: By Designate's names for them.
FILTERS: dict[str, Callable[[Pools, Wish], Pools]] = {
    'attribute': _attribute,
    'pool_id_attribute': lambda candidates, wish: candidates if wish.pool is None else [wish.pool],
    'default_pool': lambda candidates, wish: [wish.default],
    'fallback': lambda candidates, wish: candidates or [wish.default],
    'random': lambda candidates, wish: candidates and [candidates[int(wish.chance * len(candidates))]],
    'in_doubt_default_pool': lambda candidates, wish: (
        [wish.default] if len(candidates) > 1 and wish.default in candidates else candidates),
}
#: Filters that keep every pool for a domain without attributes.
_BY_ATTRIBUTES = ('attribute', 'pool_id_attribute')


@dataclasses.dataclass(frozen=True, slots=True)
class Scheduler:
    """Chooses the pools of new domains by *filters*, names of :data:`FILTERS`, in their order.

    :ivar default_id: the default pool's id, in place of its name; None if the name is known
    """

    default_name: str
    default_id: str | None = None
    filters: tuple[str, ...] = DEFAULT_FILTERS

    def pool_of(self, tx: Tx, wanted: NewDomain, chance: float) -> Pool | None:
        """The pool of a new domain, named or chosen: see :meth:`choose`."""
        attributes = json.loads(wanted.attributes or '{}')
        # The API passes the attribute as pool_id as well.
        if wanted.pool_name is not None or wanted.pool_id is not None and POOL_ID not in attributes:
            return pools.share(tx, wanted.pool_id, wanted.pool_name)
        return self.choose(tx, attributes, chance)

    def choose(self, tx: Tx, attributes: Mapping[str, str], chance: float) -> Pool | None:
        """The pool for a new domain; locked against changes until this transaction ends.  None without a default pool.

        :param chance: for the filter ``random``: from 0 to 1, without 1
        :raises NotFound: when no pool is left
        :raises Refused: when several are left
        """
        if self._is_clear(attributes):
            return pools.share(tx, self.default_id, self.default_name)
        every = pools.every(tx)
        default = next((pool for pool, _ in every if (
            pool.id == self.default_id if self.default_id else pool.name == self.default_name)), None)
        if default is None:
            return None
        named = attributes.get(POOL_ID)
        pool = next((pool for pool, _ in every if pool.id == (named or '').replace('-', '').lower()), None)
        if named is not None and pool is None and 'pool_id_attribute' in self.filters:
            raise NotFound(what=f'pool {named}', type='no_valid_pool_found')
        wish = Wish({name: value for name, value in attributes.items() if name != POOL_ID}, pool, default, chance)
        candidates: Pools = [pool for pool, has_servers in every
                             if pool is default or pool.name_servers and has_servers]
        for name in self.filters:
            candidates = FILTERS[name](candidates, wish)
        if len(candidates) > 1:
            raise Refused('multiple_pools_found', 'Several pools match the zone\'s attributes '
                          f'({", ".join(candidate.name for candidate in candidates)}); end scheduler_filters with '
                          'random, or be more specific.', 409)
        if not candidates:
            raise NotFound(what='pool that matches its attributes', type='no_valid_pool_found')
        return pools.share(tx, candidates[0].id)

    def _is_clear(self, attributes: Mapping[str, str]) -> bool:
        """Whether the filters choose the default pool whatever the pools are."""
        rest = [name for name in self.filters if name not in _BY_ATTRIBUTES]
        return self.filters[-1] == 'default_pool' or not attributes and rest[:1] == ['in_doubt_default_pool']
