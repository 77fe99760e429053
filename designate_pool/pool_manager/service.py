"""The RPC endpoint ``pool_manager.<pool name>``: see :mod:`designate_pool.rpc.pool_manager` for the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from designate_pool.errors import InvalidField
from designate_pool.model import Answer, Context, Domain, Outcome, PollResult
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic import Periodic

T = TypeVar('T')


class PoolManager:
    """Takes casts; the work is :class:`~designate_pool.pool_manager.manager.Manager`'s."""

    def __init__(self, manager: Manager, runtime: Any) -> None:
        self._manager = manager
        self._periodic = Periodic(manager, runtime)
        self._servers = {str(server.endpoint): server.id for server in manager.pool.servers}

    def start(self) -> None:
        self._periodic.start()

    def stop(self) -> None:
        self._periodic.stop()
        self._manager.stop()

    def create_domain(self, context: Context, domain: Domain) -> None:
        self._manager.change([_checked(domain, Domain, 'domain').id])

    def update_domain(self, context: Context, domain: Domain) -> None:
        self._manager.change([_checked(domain, Domain, 'domain').id])

    def delete_domain(self, context: Context, domain: Domain) -> None:
        self._manager.change([_checked(domain, Domain, 'domain').id])

    def change_domains(self, context: Context, domains: Sequence[Domain]) -> None:
        self._manager.change(each.id for each in _all_checked(domains, Domain, 'domains'))

    def update_status(self, context: Context, domain: Domain, name_server: str, status: Outcome,
                      serial_number: int | None) -> None:
        _checked(domain, Domain, 'domain')
        server_id = name_server if name_server in self._manager.lanes else self._servers.get(name_server)
        if server_id is None:
            raise InvalidField(field='name_server', why=f'{name_server!r} is no server of the pool')
        if status not in (Outcome.SUCCESS, Outcome.ERROR):
            raise InvalidField(field='status', why=f'{status!r} is neither SUCCESS nor ERROR')
        answer = Answer.TIMEOUT if serial_number is None else Answer.SERIAL
        reason = None if status == Outcome.SUCCESS else 'the server did not come to serve the serial'
        self._manager.heard([PollResult(domain.id, server_id, Outcome(status), answer, serial_number, reason,
                                        domain.serial)])

    def update_statuses(self, context: Context, results: Sequence[PollResult]) -> None:
        self._manager.heard(_all_checked(results, PollResult, 'results'))


def _checked(value: Any, kind: type[T], field: str) -> T:
    if not isinstance(value, kind):
        raise InvalidField(field=field, why=f'a {kind.__name__} is wanted, not {type(value).__name__}')
    return value


def _all_checked(values: Any, kind: type[T], field: str) -> list[T]:
    if not isinstance(values, (list, tuple)):
        raise InvalidField(field=field, why=f'a list is wanted, not {type(values).__name__}')
    return [_checked(value, kind, f'{field}[{number}]') for number, value in enumerate(values)]
