"""Frozen pools and staged releases: which version of a zone servers may have.

The invariant: the servers of a frozen pool get nothing that was changed since; signatures alone are renewed.  The first
change of a zone under the freeze notes in the domain which version was the newest before (:func:`hold`), and
:func:`permitted` alone says which one servers may have: MiniDNS, the catalog zone and the pool manager ask it.

In a pool with stages, the first change notes that likewise, and the servers of later stages have the version before
(:func:`staged`) until the release has come to their stage.  Changes that are made meanwhile wait for its end.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

#: After all stages: of those that are no servers of the pool.
LAST_STAGE = 1_000_000
#: A domain, or the head of a zone.
T = TypeVar('T', bound=Any)
#: What servers may have of a domain that they were not to have before the freeze.
NOTHING = 'null'
#: Of a domain, what its version was; no later change of the domain changes that.
_KEPT = ('generation', 'serial', 'awaits_transfer', 'email', 'ttl', 'refresh', 'retry', 'expire', 'minimum',
         'soa_names', 'content_serial', 'is_signed')


@dataclasses.dataclass(frozen=True, slots=True)
class Freeze:
    """The freeze of a pool.

    :ivar until: when it ends by itself; None for never
    :ivar user: who began it
    """

    id: str
    reason: str
    since: datetime
    until: datetime | None = None
    user: str = ''

    @property
    def text(self) -> str:
        """As it is stored: JSON."""
        return json.dumps(dataclasses.asdict(self), default=datetime.isoformat)

    def is_over(self, now: datetime) -> bool:
        """Whether it is to have ended by itself."""
        return self.until is not None and self.until <= now

    @classmethod
    def parse(cls, text: str | None) -> Freeze | None:
        """The freeze of :attr:`text`; None for none."""
        if text is None:
            return None
        values = json.loads(text)
        times = {name: values[name] and datetime.fromisoformat(values[name]) for name in ('since', 'until')}
        return cls(**{**values, **times})


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """The staged release of a version of a zone.

    :ivar stage: servers of this stage and of those before it may have the version that is released
    :ivar version: which this is, as :func:`hold` notes it; None for the newest
    :ivar turned_back: the serial under which these servers have the contents before again; None for not
    :ivar held: why it does not go on; '' while it does
    """

    stage: int = 1
    version: str | None = None
    turned_back: int | None = None
    held: str = ''

    @property
    def text(self) -> str:
        """As it is stored: JSON."""
        return json.dumps(dataclasses.asdict(self))


def parse_stages(text: str) -> list[tuple[frozenset[str], float]]:
    """The labels of servers, and the percentage of all servers, that each stage of the option ``release`` has.

    :raises ValueError: when it is not of the form ``canary LABEL[, LABEL]; 25 %; all``
    """
    result: list[tuple[frozenset[str], float]] = []
    for part in text.split(';'):
        kind, _, rest = part.strip().partition(' ')
        if kind == 'canary' and rest.strip() and not result:
            result.append((frozenset(label.strip() for label in rest.split(',')), 0))
        elif kind == 'all' and not rest:
            result.append((frozenset(), 100))
        elif part.strip().endswith('%') and 0 < float(part.strip()[:-1]) < 100:
            result.append((frozenset(), float(part.strip()[:-1])))
        else:
            raise ValueError(f"'{part.strip()}' is neither canary with labels, nor a percentage, nor all")
    percentages = [percentage for _, percentage in result]
    if len(result) < 2 or percentages[-1] != 100 or percentages != sorted(set(percentages)):
        raise ValueError('there must be two stages at least, each larger than the one before, and the last is all')
    return result


def stages(text: str | None, servers: Sequence[Any]) -> dict[str, int]:
    """In which stage each server, by its id, gets new versions; 0 where there are no stages.

    :param servers: all that the configuration has, in its order: percentages count them so
    """
    result: dict[str, int] = {}
    for number, (named, percentage) in enumerate(parse_stages(text) if text else (), 1):
        most = math.ceil(len(servers) * percentage / 100)
        for server in servers:
            if server.label in named or len(result) < most:
                result.setdefault(server.id, number)
    return {server.id: result.get(server.id, 0) for server in servers}


def hold(domain: Any) -> dict[str, Any]:
    """The fields that a change gives a domain of a frozen pool, or one with stages, so that servers keep the version
    before."""
    if domain.freeze is None and domain.release_state is None and (
            domain.pool_release is None or domain.is_secondary or domain.former_pool_id is not None):
        return {}
    freeze, release = Freeze.parse(domain.freeze), domain.release
    version = NOTHING if domain.is_going else json.dumps({name: getattr(domain, name) for name in _KEPT})
    if release is not None:
        waits = release if release.turned_back is not None else dataclasses.replace(
            release, version=release.version or version)
        return {'release_state': waits.text, **({'held_by': freeze.id} if freeze is not None else {})}
    if freeze is not None:
        return {} if domain.held_by == freeze.id else {'held_by': freeze.id, 'version_before': version}
    return {'release_state': Release().text, 'version_before': version}


def staged(newest: T, version_before: str, release: Release) -> tuple[T | None, T | None]:
    """A domain, or the head of a zone, in a release, as servers of the stages may have it, and as the others may."""
    before = permitted(newest, version_before)
    if release.turned_back is not None and before is not None:
        return dataclasses.replace(before, serial=release.turned_back), before
    return permitted(newest, release.version), before


def permitted(newest: T, version_before: str | None) -> T | None:
    """A domain, or the head of a zone, at the version that servers may have; None if they get none.

    :param version_before: what the freeze under which its changes wait has noted of it; None without such a freeze
    """
    if version_before is None:
        return newest
    version = json.loads(version_before)
    # Neither a deletion is done, nor what followed it.
    if version is None or version['awaits_transfer'] or getattr(newest, 'generation', None) not in (
            None, version['generation']):
        return None
    return dataclasses.replace(newest, **{name: value for name, value in version.items() if hasattr(newest, name)})
