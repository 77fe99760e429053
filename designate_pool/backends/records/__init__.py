"""Servers that cannot transfer: each is fed by records, through a provider of the planner."""

from designate_pool.backends.records.base import RecordBackend

__all__ = ['RecordBackend']
