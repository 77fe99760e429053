from __future__ import annotations

from benchmarks import pairs
from benchmarks.pairs import Found, repeated, tally, told_again
from benchmarks.steps import Step

LOG = '''
22-Nov-2026 03:56:12.760 received control channel command 'addzone "a.example.com." IN _default { type secondary; };'
22-Nov-2026 03:56:12.764 added zone a.example.com. in view _default via addzone
22-Nov-2026 03:56:12.868 zone a.example.com/IN: transferred serial 7
22-Nov-2026 03:56:12.868 transfer of 'a.example.com/IN' from 127.0.0.1#5354: Transfer completed: 1 messages (serial 7)
22-Nov-2026 03:56:13.116 client @0x7f4c03c33098 127.0.0.1#47161: received notify for zone 'a.example.com'
22-Nov-2026 03:56:13.128 client @0x7f4c03c33098 127.0.0.1#47161: received notify for zone 'a.example.com'
22-Nov-2026 03:56:13.136 zone a.example.com/IN: transferred serial 8
22-Nov-2026 03:56:13.256 received control channel command 'showzone "a.example.com." IN _default'
22-Nov-2026 03:56:13.256 received control channel command 'delzone -clean "a.example.com." IN _default'
22-Nov-2026 03:56:13.257 received control channel command 'delzone -clean "b.example.com." IN _default'
22-Nov-2026 03:56:13.258 received control channel command 'delzone -clean "a.example.com." IN _default'
'''


def found(seconds: float, **again: int) -> Found:
    step = Step('', seconds, seconds / 2, {'central': seconds / 4}, 0)
    return Found(dict.fromkeys(pairs.STEPS, step), [seconds, 2 * seconds, 6 * seconds], dict.fromkeys(pairs.DEEDS, 10),
                 {deed: again.get(deed, 0) for deed in pairs.DEEDS})


def test_what_a_server_did_is_counted_from_its_log() -> None:
    counts = tally(LOG)
    assert {deed: (each.total(), repeated(each)) for deed, each in counts.items()} == {
        'addzone': (1, 0), 'delzone': (3, 1), 'NOTIFY': (2, 1), 'transfer of a serial': (2, 0)}
    assert counts['delzone'] == {'a.example.com.': 2, 'b.example.com.': 1}


def test_a_driver_that_tells_a_server_twice_is_a_fault() -> None:
    assert told_again([found(1), found(2, NOTIFY=5)]) == {}
    assert told_again([found(1, delzone=1), found(2, delzone=2, NOTIFY=1)]) == {'delzone': 3}
