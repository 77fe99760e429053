"""Fixtures for all tests.  eventlet's copy of dnspython is switched off before anything imports eventlet."""

import pathlib

import designate_pool  # noqa: F401  sets EVENTLET_NO_GREENDNS

_HERE = pathlib.Path(__file__).parent
pytest_plugins = tuple(f'tests.fixtures.{name}' for name in ('databases', 'bind', 'rabbitmq', 'nameservers')
                       if (_HERE / 'fixtures' / f'{name}.py').exists())
