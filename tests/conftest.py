"""Fixtures for all tests.  eventlet's copy of dnspython is switched off before anything imports eventlet."""

from hypothesis import HealthCheck, settings

import designate_pool  # noqa: F401  sets EVENTLET_NO_GREENDNS

pytest_plugins = tuple(f'tests.fixtures.{name}' for name in (
    'bind', 'central', 'databases', 'knot', 'nameservers', 'nsd', 'pdns', 'rabbitmq'))

# How long an example takes says more about who else uses the machine than about the code.
settings.register_profile('shared machine', deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile('shared machine')
