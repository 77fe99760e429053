"""Schemathesis against the whole system: whatever the document allows or forbids is answered as the document says."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from testing.stack import Stack

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: How many requests are made up for each operation in each phase; more by hand: SCHEMATHESIS_EXAMPLES=200 make test
EXAMPLES = int(os.environ.get('SCHEMATHESIS_EXAMPLES', '2'))
SEED = os.environ.get('SCHEMATHESIS_SEED', '1')
SERVERS = [f'[backend:fake:{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}]\nhost = 192.0.2.{digit}\n'
           'serves = true\ncall_timeout = 2\n' for digit in '12']
#: Of which each parameter is tried.
EVERYTHING_AT = '/v2/zones'
#: What a value means, so that there is a 400 for what fits the document, is Central's to judge.
CONFIGURATION = '''
hooks = "tests.fixtures.schemathesis_hooks"
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx"]
positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "413"]
negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415"]
[warnings]
enabled = false
'''


@pytest.fixture(scope='module')
def stack(tmp_path_factory):
    """The whole system in one process, and a token for all of it."""
    folder = tmp_path_factory.mktemp('openapi')
    api = f'auth = token\ntokens_file = {folder}/tokens\nwaits = 4\nrate_limit = 0\npending_imports = 1000000\n'
    found = Stack(folder / 'stack', [api, *SERVERS], f'sqlite:///{folder}/pool.sqlite', concurrency='threading')
    token = found.manage('token', 'create', 'tester', '--project', 'tests', '--role', 'admin').split()[0]
    with found:
        yield found, token


def specific(document):
    """The document in which parameters that every operation has, and the same code reads, are those of one path alone:
    they make up most of all that can be sent.
    """
    operations = [(path, operation) for path, methods in document['paths'].items() for operation in methods.values()]
    counts = collections.Counter(each['name'] for _, operation in operations for each in operation['parameters'])
    for path, operation in operations:
        if path != EVERYTHING_AT:
            operation['parameters'] = [each for each in operation['parameters']
                                       if counts[each['name']] < len(operations) // 2]
    return document


def test_nothing_that_the_document_does_not_say(stack, tmp_path):
    system, token = stack
    configuration = tmp_path / 'schemathesis.toml'
    configuration.write_text(CONFIGURATION)
    (tmp_path / 'document.json').write_text(json.dumps(specific(system.request('GET', '/openapi.json', 200))))
    command = [sys.executable, '-m', 'schemathesis.cli', '--config-file', str(configuration), 'run',
               'document.json', '--url', system.url, '--header', f'X-Auth-Token: {token}', '--checks', 'all',
               '--phases', 'examples,coverage,fuzzing,stateful', '--max-examples', str(EXAMPLES), '--seed', SEED,
               '--continue-on-failure', '--no-shrink', '--request-timeout', '60', '--workers', '1', '--no-color',
               '--output-sanitize', 'false']
    done = subprocess.run(command, capture_output=True, text=True, timeout=480 + 60 * EXAMPLES, check=False,
                          cwd=tmp_path, env={**os.environ, 'PYTHONPATH': str(ROOT), 'SCHEMATHESIS_HOOKS': ''})
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    generated = re.search(r'(\d+) generated', done.stdout)
    assert generated and int(generated[1]) > 1000, done.stdout[-2000:]
    assert 'failed [' not in system.processes['all'].log.read_text()
