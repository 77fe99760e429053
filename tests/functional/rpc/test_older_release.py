"""Messages between this release and the first one whose programs may run beside it, in both directions.

A method that only one of them has is not asked of the other: what an older program does not know is answered by it with
an error that names the method.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from tests.fixtures import rpc_contract
from tests.fixtures.older_release import OlderRelease

SCRIPT = pathlib.Path(rpc_contract.__file__)


def run_ours(*arguments: str) -> str:
    return subprocess.run([sys.executable, SCRIPT, *arguments], stdout=subprocess.PIPE, text=True, check=True,
                          timeout=120).stdout


@pytest.fixture(scope='module')
def contracts(older_release: OlderRelease) -> dict[str, Any]:
    return {'ours': json.loads(run_ours()), 'theirs': json.loads(older_release.run(SCRIPT))}


@pytest.mark.parametrize(('sender', 'receiver'), [('ours', 'theirs'), ('theirs', 'ours')])
def test_what_is_sent_is_taken(contracts: dict[str, Any], sender: str, receiver: str) -> None:
    wrong = {}
    compared = 0
    for topic, methods in contracts[sender]['sent'].items():
        for method, arguments in methods.items():
            taken = contracts[receiver]['taken'][topic].get(method)
            if taken is None:
                continue
            compared += 1
            required = {name for name, is_required in taken.items() if is_required}
            if not required <= set(arguments) <= set(taken):
                wrong[f'{topic}.{method}'] = (arguments, taken)
    assert compared > 40 and wrong == {}


def test_no_method_of_the_older_release_is_gone(contracts: dict[str, Any]) -> None:
    for topic, methods in contracts['theirs']['sent'].items():
        assert set(methods) <= set(contracts['ours']['taken'][topic])


#: Values that travel in calls of methods alone that the older release does not have, and so never makes.
OF_NEW_METHODS = {'Tld', 'Blacklist', 'ZoneTransferRequest', 'ZoneTransferAccept', 'ZoneShare', 'RefreshTask',
                  'ZoneTransferIn', 'ManagedRecord', 'FloatingIp'}


@pytest.mark.parametrize('sender', ['ours', 'theirs'])
def test_values_are_read(contracts: dict[str, Any], older_release: OlderRelease, tmp_path: pathlib.Path,
                         sender: str) -> None:
    """Every class of values, and every word that one of its fields can have."""
    packed = tmp_path / 'packed.json'
    packed.write_text(json.dumps(contracts[sender]['values']))
    assert len(contracts[sender]['values']) > 40
    wrong = json.loads(run_ours(str(packed)) if sender == 'theirs' else older_release.run(SCRIPT, str(packed)))
    assert {each.partition(' ')[0] for each in wrong} == (set() if sender == 'theirs' else OF_NEW_METHODS)
