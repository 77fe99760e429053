"""Dynamic answers (by client location or health), and how they are simplified for targets with fewer features.

The form is that of octoDNS's YAML: ``pools`` of ``values`` that may have a ``status``, and ``rules`` that choose a
pool by ``geos`` or ``subnets``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Dynamic = dict[str, Any]

#: The status of a value that is used while it is healthy.
OBEY = 'obey'


def checked(dynamic: Mapping[str, Any]) -> Mapping[str, Any]:
    """*dynamic* itself, if it has the expected form.

    :raises ValueError: when it has not
    """
    pools, rules = dynamic.get('pools') or {}, dynamic.get('rules') or []
    if not (isinstance(pools, Mapping) and all(isinstance(pool, Mapping) and _are_mappings(pool.get('values', []))
                                               for pool in pools.values())):
        raise ValueError("the 'pools' of 'dynamic' are mappings with lists of 'values', each of which is a mapping")
    if not _are_mappings(rules):
        raise ValueError("the 'rules' of 'dynamic' are a list of mappings")
    for names in (pool.get('fallback') for pool in pools.values()), (rule.get('pool') for rule in rules):
        if not all(name is None or isinstance(name, str) for name in names):
            raise ValueError("a 'fallback' or 'pool' of 'dynamic' is the name of a pool")
    return dynamic


def without_status(dynamic: Mapping[str, Any]) -> tuple[Dynamic, list[str]]:
    """*dynamic* without the status of values, and the names of the pools that this changes."""
    changed = [name for name, pool in _pools(dynamic).items()
               if any(value.get('status', OBEY) != OBEY for value in pool.get('values', ()))]
    pools = {name: {**pool, 'values': [{key: value for key, value in entry.items() if key != 'status'}
                                       for entry in pool.get('values', ())]} if name in changed else pool
             for name, pool in _pools(dynamic).items()}
    return {**dynamic, 'pools': pools}, changed


def without_subnets(dynamic: Mapping[str, Any]) -> tuple[Dynamic, list[int]]:
    """*dynamic* without subnets in rules, and the numbers (from 1) of the rules that had some.

    A rule that also has geos keeps these; a rule without geos is removed, and so are pools that are no longer used.
    """
    rules, changed = [], []
    for number, rule in enumerate(dynamic.get('rules', ()), 1):
        if rule.get('subnets'):
            changed.append(number)
            rule = {key: value for key, value in rule.items() if key != 'subnets'} if rule.get('geos') else None
        rules += [] if rule is None else [rule]
    pools, used = _pools(dynamic), set()
    for rule in rules:
        name = rule.get('pool')
        while name in pools and name not in used:
            used.add(name)
            name = pools[name].get('fallback')
    kept = {name: pool for name, pool in pools.items() if name in used or not changed}
    return {**dynamic, 'pools': kept, 'rules': rules}, changed


def _are_mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _pools(dynamic: Mapping[str, Any]) -> Mapping[str, Any]:
    pools: Mapping[str, Any] = dynamic.get('pools') or {}
    return pools
