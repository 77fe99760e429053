"""Green threads get their turns while a large body is read, or a large message packed; in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from designate_pool import model
from designate_pool.rpc.serializer import FEW, pack, unpack

SCRIPT = """
import designate_pool
from designate_pool import runtime
runtime.patch()
import io, json, sys, threading, time
import falcon, falcon.testing
from designate_pool.api.http import request
from designate_pool.api.operation_registry import operations
from designate_pool.model import Action, Outcome, Report
from designate_pool.rpc.serializer import pack, unpack

changes = [{'name': f'h{number}.example.com.', 'type': 'A', 'records': ['192.0.2.1']} for number in range(8000)]
body = json.dumps({'changes': changes}).encode()
ended, turns = [], [0]

def wait():
    while not ended:
        turns[0] += 1
        time.sleep(0)

threading.Thread(target=wait).start()
time.sleep(0)
def took(work, *arguments, **options):
    before = turns[0]
    found = work(*arguments, **options)
    told.append(turns[0] - before)
    return found

told = []
environ = falcon.testing.create_environ(method='POST', body=body, headers={'Content-Type': 'application/json'})
req = falcon.Request(environ)
req.context.operation = next(each for each in operations() if each.name == 'change_zone')
given = took(request.body, req, 1 << 25)
assert given['changes'] == changes
values = [Report('d' * 32, Action.UPDATE, 1, Outcome.SUCCESS, number) for number in range(8000)]
packed = took(pack, values)
assert took(unpack, packed) == values
ended.append(True)
print(json.dumps(told))
"""


def test_others_have_their_turns_while_a_large_body_is_read_and_sent_on() -> None:
    ran = subprocess.run([sys.executable, '-W', 'ignore', '-c', SCRIPT], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    read, packed, unpacked = json.loads(ran.stdout)
    assert read >= 16 and packed >= 8 and unpacked >= 8


@pytest.mark.parametrize('count', [FEW, FEW + 1])
def test_long_lists_come_out_as_they_went_in(count: int) -> None:
    reports = [model.Report('d' * 32, model.Action.UPDATE, 1, model.Outcome.SUCCESS, serial) for serial in range(count)]
    packed = pack({'reports': reports})
    assert unpack(json.loads(json.dumps(packed))) == {'reports': reports}
    assert count == FEW or max(map(len, packed['reports']['v'])) < 200_000, 'in pieces'
