"""A process in namespaces of its own: what it mounts, starts and configures there ends with it, however it ends.

The kernel removes all of it: the processes when the first of them ends, the mounts and networks with the last.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence

from testing.processes import binary

_INSIDE = 'TORTURE_ISOLATED'


def required() -> None:
    """
    :raises RuntimeError: outside of :func:`run`
    """
    if os.environ.get(_INSIDE) != os.readlink('/proc/self/ns/net'):
        raise RuntimeError('faults are made in network namespaces of their own only: start this by "make torture" '
                           'or "python -m tests.torture"')


def run(module: str, arguments: Sequence[str]) -> int:
    """Run ``python -m module`` in new namespaces (network, mounts, processes); its exit code.

    :raises RuntimeError: when this system, or who we are, does not allow namespaces
    """
    if os.geteuid() != 0:
        raise RuntimeError('network namespaces, mounts and nftables need root')
    # It ends with us, whatever ends us.
    unshare = [binary('setpriv'), '--pdeathsig', 'KILL', '--',
               binary('unshare'), '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--']
    tried = subprocess.run([*unshare, binary('true')], capture_output=True, text=True, timeout=60, check=False)
    if tried.returncode:
        raise RuntimeError(f'this system does not allow namespaces: {tried.stderr.strip()}')
    inner = subprocess.Popen([*unshare, sys.executable, '-m', f'{__package__}.isolation', module, *arguments])
    try:
        return inner.wait()
    except KeyboardInterrupt:
        # It has been sent to the inner process as well, which tells what it knows and ends.
        return inner.wait()
    finally:
        inner.kill()


def _enter(module: str, arguments: Sequence[str]) -> None:
    """Prepare the namespaces and become the program."""
    networks = pathlib.Path('/run/netns')
    networks.mkdir(exist_ok=True)
    subprocess.run(['mount', '-t', 'tmpfs', 'torture', str(networks)], check=True, timeout=60)
    temporary = networks / 'tmp'
    temporary.mkdir()
    os.environ['TMPDIR'] = str(temporary)
    os.environ[_INSIDE] = os.readlink('/proc/self/ns/net')
    os.execv(sys.executable, [sys.executable, '-m', module, *arguments])


if __name__ == '__main__':
    _enter(sys.argv[1], sys.argv[2:])
