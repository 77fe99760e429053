"""BIND's control channel, kept and told directly."""

from __future__ import annotations

from collections.abc import Sequence

from designate_pool.backends.bind9 import rndc
from designate_pool.deadline import Deadline
from designate_pool.model import Endpoint
from testing.bind import Named

#: Control channels to each server; the pool manager has as many by default.
CHANNELS = 4
_SECONDS = 120.0


def addzone(name: str, primary: Endpoint) -> str:
    """The command that makes the zone *name*, transferred from *primary*."""
    return (f'addzone "{name}" IN _default {{ type secondary; primaries {{ {primary.host} port {primary.port}; }};'
            f' file "{name}db"; }};')


def delzone(name: str) -> str:
    """The command that removes the zone *name* with its file."""
    return f'delzone -clean "{name}" IN _default'


def connect(server: Named) -> rndc.RndcChannel:
    """A control channel to *server*."""
    key = rndc.RndcKey.read(str(server.folder / 'rndc.key'))
    return rndc.open_channel(server.host, server.rndc_port, key, Deadline(_SECONDS))


def give(channel: rndc.RndcChannel, commands: Sequence[str], failures: list[str]) -> None:
    """Give *commands* one after the other; what named refuses is added to *failures*."""
    for command in commands:
        answer = channel.ask(command, Deadline(_SECONDS))
        if answer.result:
            failures.append(f'{command}: {answer.words}')
