"""Services over clusters."""

from __future__ import annotations

import contextlib
import pathlib
import uuid
from collections.abc import Callable, Iterator

import pytest

from testing.bind import Named
from testing.stack import Stack
from tests.functional.clusters.load import Load


@pytest.fixture
def loaded(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Load]]:
    """Starts the services with two BINDs: ``loaded(database_url)``, and returns a load that is not running yet."""
    with contextlib.ExitStack() as end:
        def start(database_url: str, transport_url: str = '', options: str = '') -> Load:
            servers = [Named(tmp_path / f'named{number}') for number in (1, 2)]
            for each in servers:
                end.callback(each.remove)
                each.start()
            sections = [each.section(str(uuid.uuid4()), call_timeout=4) for each in servers]
            broker = transport_url or request.getfixturevalue('rabbitmq').url
            stack = Stack(tmp_path / 'stack', [*sections, options], database_url, broker)
            return Load(end.enter_context(stack), servers)

        yield start
