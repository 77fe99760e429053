"""The SOA of a zone, whose record is made from the domain and not stored."""

from __future__ import annotations

import dataclasses

from designate_pool.model import Action, Domain, Record, RecordSet, Status, Task
from designate_pool.protocol import soa_rdata


def _soa_task(domain: Domain) -> tuple[Task, Status]:
    """Task and status of the SOA: those of the domain."""
    if domain.status in (Status.ACTIVE, Status.DELETED):
        return Task.NONE, domain.status
    task = {Action.CREATE: Task.ADD, Action.DELETE: Task.DELETE}.get(domain.action, Task.UPDATE)
    return task, domain.status


def with_soa(found: RecordSet, domain: Domain, primary: str) -> RecordSet:
    """*found*; if it is the SOA, with its record, which is not stored."""
    if not (found.managed and found.type == 'SOA'):
        return found
    task, status = _soa_task(domain)
    record = Record(soa_rdata.text(domain, primary), id=found.id, serial_number=domain.serial, task=task, status=status)
    return dataclasses.replace(found, records=(record,))
