"""Drivers of servers that cannot transfer: the records of zones are written through a provider of the planner."""

from designate_pool.backends.records.base import RecordBackend

__all__ = ['RecordBackend']
