"""The contract of drivers as tests, for drivers in this repository and elsewhere.

It needs pytest (``pip install designate-pool[testing]``); no program imports it.
"""

import pytest

# Before the import, so that a failed assert shows its values.
pytest.register_assert_rewrite('designate_pool.testing.contract')

from designate_pool.testing.contract import (NOWHERE, ODD_NAMES, Contract, KeyedContract, KeyedRig,  # noqa: E402
                                             RemoteContract, RemoteRig, Rig, TcpRig, UnixRig, a_domain, opened)
from designate_pool.testing.processes import free_port, wait_until  # noqa: E402

__all__ = ['NOWHERE', 'ODD_NAMES', 'Contract', 'KeyedContract', 'KeyedRig', 'RemoteContract', 'RemoteRig', 'Rig',
           'TcpRig', 'UnixRig', 'a_domain', 'free_port', 'opened', 'wait_until']
