"""What every program says of itself."""

from __future__ import annotations

import pytest

from designate_pool import __version__
from designate_pool.cmd.programs import daemons, webhook
from testing import warm

PROGRAMS = [*(('programs.daemons', name) for name in daemons.PROGRAMS),
            *((module,) for module in ('programs.nameserver', 'programs.sync', 'programs.webhook', 'manage.app'))]


@pytest.mark.parametrize('program', PROGRAMS, ids=' '.join)
def test_version_and_help(program: tuple[str, ...]) -> None:
    version = warm.run(f'designate_pool.cmd.{program[0]}', *program[1:], '--version')
    assert (version.returncode, version.stdout.split()[-1], version.stderr) == (0, __version__, '')
    shown = warm.run(f'designate_pool.cmd.{program[0]}', *program[1:], '--help')
    _, sentence, *_ = shown.stdout.split('\n\n')
    assert shown.returncode == 0
    assert sentence[0].isupper() and sentence.endswith('.')


def test_the_webhook_takes_a_ttl_as_the_command_does() -> None:
    assert webhook._parser().parse_args(['--ttl', '1h']).ttl == 3600
    assert webhook._parser().parse_args([]).ttl == 300
