"""What the workload writes into zones, and how the observer reads it back."""

from __future__ import annotations

import dns.rdata
import pytest

from tests.torture import workload
from tests.torture.clients import Answer, Http
from tests.torture.history import CREATE, DELETE, History


@pytest.mark.parametrize('rtype', workload.TYPES)
def test_records_are_as_servers_show_them_and_of_one_operation(rtype: str) -> None:
    seen: dict[str, int] = {}
    for op in (0, 1, 7, 255, 256, 65535, 65536, 300_000):
        for text in workload.records_of(rtype, op, two=True):
            assert dns.rdata.from_text('IN', rtype, text).to_text() == text
            assert seen.setdefault(text, op) == op
    assert len(workload.records_of(rtype, 1)) == 1


def test_a_zone_tells_who_created_it() -> None:
    assert workload.life_of_email(workload.email_of(12)) == 12
    assert workload.life_of_rname('op12.kit.example.') == 12
    assert workload.life_of_rname('hostmaster.example.org.') is None


def test_zones_whose_name_is_used_once_are_deleted_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []

    class Api(Http):
        def __init__(self, url: str, token: str | None, *rest: object) -> None:
            self._token = token

        def delete(self, zone_id: str) -> Answer:
            sent.append((self._token or '', zone_id))
            return Answer(zone_id, 1, 202)

    monkeypatch.setattr(workload, 'Http', Api)
    history = History()
    made = workload.Workload(history, ['http://192.0.2.1'], {'ada': 'token of ada', 'bea': 'token of bea'}, 1)
    for life, name in enumerate(['once0.ada.example.', 'z0.ada.example.', 'once0.bea.example.', 'once1.bea.example.'],
                                1):
        tenant = name.split('.')[-3]
        made._do(life, 'c', tenant, CREATE, name, life, [], lambda life=life: Answer(f'id{life}', 1, 202))
    assert made.lone_names() == ['once0.ada.example.', 'once0.bea.example.', 'once1.bea.example.']
    assert made.delete(['once0.ada.example.', 'once1.bea.example.', 'once7.bea.example.']) == 2
    assert sent == [('token of ada', 'id1'), ('token of bea', 'id4')]
    assert made.lone_names() == ['once0.bea.example.']
    assert [each['zone'] for each in history.events() if each.get('type') == DELETE] == [
        'once0.ada.example.', 'once1.bea.example.']


def test_an_event_has_what_events_of_its_kind_have() -> None:
    with pytest.raises(AssertionError, match='healed'):
        History().add('healed', when='now')
