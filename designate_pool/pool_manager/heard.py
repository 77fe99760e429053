"""What was heard from a server, of a driver's call or a poll: whom it is about, and whether it is good."""

from __future__ import annotations

from designate_pool.model import Outcome, PollResult
from designate_pool.pool_manager.lane import Called

Heard = Called | PollResult


def domain_of(heard: Heard) -> str:
    """The domain's id."""
    return heard.work.domain.id if isinstance(heard, Called) else heard.domain_id


def server_of(heard: Heard) -> str:
    """The server's id."""
    return heard.work.row.server_id if isinstance(heard, Called) else heard.server_id


def is_success(heard: Heard) -> bool:
    return heard.result.ok if isinstance(heard, Called) else heard.status is Outcome.SUCCESS
