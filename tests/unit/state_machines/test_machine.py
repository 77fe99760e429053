"""Runs the state machine, see the package: 16 runs by default, 8 in the profile ``quick``.

These are the same each time.  In the profile ``long`` they are others each time, and 3,333.
"""

from __future__ import annotations

from hypothesis import settings

from tests.unit.state_machines.machine import STEPS, ClusterMachine

TestCluster = ClusterMachine.TestCase
TestCluster.settings = settings(max_examples=settings.default.max_examples // 3, stateful_step_count=STEPS,
                                derandomize=settings.get_current_profile_name() != 'long')
