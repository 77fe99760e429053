"""The API's policy for oslo.policy's own commands (entry point ``oslo.policy.enforcer``).

``oslopolicy-validator --namespace designate_pool --config-file ...`` and the like read it.
"""

from __future__ import annotations

from oslo_config import cfg
from oslo_policy import policy as oslo

from designate_pool.api.auth import policy


def enforcer() -> oslo.Enforcer:
    """Our defaults, which the policy file of the command's configuration overrides."""
    return policy.make_enforcer(cfg.CONF)
