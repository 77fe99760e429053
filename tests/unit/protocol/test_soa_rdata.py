"""A zone's SOA is the same on the wire, as text, and as Central shows it."""

from __future__ import annotations

import dns.rdata
import pytest

from designate_pool.model import Domain, RecordSet, ZoneHead
from designate_pool.protocol import soa_rdata
from designate_pool.storage.queries import with_soa

TIMERS = {'ttl': 300, 'serial': 7, 'refresh': 3600, 'retry': 600, 'expire': 86400, 'minimum': 900}


@pytest.mark.parametrize('email', ['hostmaster@example.com', 'first.last@Example.com', 'a$b@ex$ample.com',
                                   'a@exa;mple.com', 'a@exa mple.com', r'a@b\046c.com'])
def test_all_forms_say_the_same(email: str) -> None:
    head = ZoneHead('d1', 'example.com.', 'default', email, name_servers=('ns1.example.com.',), **TIMERS)
    domain = Domain('d1', 'example.com.', 'p1', 'default', email, **TIMERS)

    text = soa_rdata.text(head, 'ns1.example.com.')

    parsed = dns.rdata.from_text('IN', 'SOA', text)
    assert parsed.to_text() == text
    assert parsed.to_wire() == soa_rdata.encode(head)
    managed = with_soa(RecordSet('example.com.', 'SOA', managed=True), domain, 'ns1.example.com.')
    assert [record.data for record in managed.records] == [text]
