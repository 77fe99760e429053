"""``make test-openstack-clients``: services of OpenStack, from PyPI, against our API with a stand-in for Keystone."""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import uuid

import requests

from testing.processes import exit_on_sigterm
from testing.stack import Stack
from tests.designate import heat_calls, neutron_calls
from tests.fixtures import keystone
from tests.fixtures.keystone import Keystone
from tests.fixtures.nameservers import Primary, SecondaryServer, zone_text

#: What runs with the other libraries.
CALLS: dict[str, types.ModuleType] = {'neutron': neutron_calls, 'heat': heat_calls}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--venv', type=pathlib.Path, required=True, help='where Neutron and Heat are installed')
    parser.add_argument('--only', choices=CALLS)
    given = parser.parse_args(arguments)
    exit_on_sigterm()
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
            str(uuid.uuid4()), call_timeout=2),
            '[service:central]\nmaster_networks = 127.0.0.0/8\nmaster_ports = 1-65535'],
            f'sqlite:///{folder}/pool.sqlite')
        identity.endpoints['dns'] = pool.url
        stack.callback(pool.stop)
        pool.start()
        issued = identity.issue({'identity': {'password': {'user': {'name': 'one', 'password': keystone.PASSWORD}}},
                                 'scope': {'project': {'name': 'one'}}})
        assert issued is not None
        made = requests.post(f'{pool.url}/v2/zones', headers={'X-Auth-Token': issued[0]}, timeout=60,
                             json={'name': 'example.com.', 'email': 'hostmaster@example.com'})
        assert made.status_code == 202, made.text
        master = Primary()
        master.start()
        stack.callback(master.stop)
        master.publish('second.example.org.', zone_text(7))
        one, = identity.find('users', {'name': 'one'})
        parameters = json.dumps({
            'url': pool.url, 'keystone': identity.url, 'admin': keystone.ADMIN, 'password': keystone.PASSWORD,
            'token': issued[0], 'user_id': one['id'], 'project_id': identity.tokens[issued[0]][0],
            'folder': str(folder), 'master': f'{master.host}:{master.port}'})
        failed = []
        for name in [given.only] if given.only else CALLS:
            done = subprocess.run([given.venv / 'bin' / 'python', CALLS[name].__file__, parameters], timeout=300,
                                  check=False)
            print(f'{name}: {"failed" if done.returncode else "passed"}', flush=True)
            failed += [name] if done.returncode else []
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
