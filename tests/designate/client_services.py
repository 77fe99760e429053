"""``make test-neutron``: Neutron's own DNS driver, from PyPI, against our API with a stand-in for Keystone."""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import uuid

import requests

from testing.stack import Stack
from tests.designate import neutron_calls
from tests.fixtures import keystone
from tests.fixtures.keystone import Keystone
from tests.fixtures.nameservers import SecondaryServer


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--neutron', type=pathlib.Path, required=True, metavar='VENV')
    given = parser.parse_args(arguments)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        identity = Keystone()
        stack.callback(identity.stop)
        identity.add_user('one', 'member')
        identity.add_user(keystone.ADMIN, 'admin')
        server = SecondaryServer(folder / 'ns1')
        server.start()
        stack.callback(server.stop)
        # What comes first belongs to the section of the API.
        pool = Stack(folder / 'pool', ['auth = keystone', identity.section(), server.section(
            str(uuid.uuid4()), call_timeout=2)], f'sqlite:///{folder}/pool.sqlite')
        identity.endpoints['dns'] = pool.url
        stack.callback(pool.stop)
        pool.start()
        issued = identity.issue({'identity': {'password': {'user': {'name': 'one', 'password': keystone.PASSWORD}}},
                                 'scope': {'project': {'name': 'one'}}})
        assert issued is not None
        made = requests.post(f'{pool.url}/v2/zones', headers={'X-Auth-Token': issued[0]}, timeout=60,
                             json={'name': 'example.com.', 'email': 'hostmaster@example.com'})
        assert made.status_code == 202, made.text
        done = subprocess.run(
            [given.neutron / 'bin' / 'python', neutron_calls.__file__, json.dumps({
                'url': pool.url, 'keystone': identity.url, 'admin': keystone.ADMIN, 'password': keystone.PASSWORD,
                'token': issued[0]})], timeout=300, check=False)
    print('failed' if done.returncode else 'passed')
    return done.returncode


if __name__ == '__main__':
    sys.exit(main())
