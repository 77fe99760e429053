"""A zone that was edited by hand on a BIND, with the serial that the pool's next change gets."""

from __future__ import annotations

import pathlib
import re
import uuid
from collections.abc import Iterator

import dns.query
import dns.rcode
import dns.update
import dns.zone
import pytest

from testing.bind import Named
from testing.processes import wait_until
from testing.stack import QUICK, Stack

#: Newer than the clock, as serials with dates are: each change has the next number.
SERIAL = 2_026_010_101
NAME, OWNER = 'example.com.', 'www.example.com.'


class Edited:
    """A pool of one BIND, which has one zone.

    :ivar zone: its id, and of its one RRset
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.named = Named(folder / 'named')
        # No audit may find the edit: only the change itself shows it.
        self.stack = Stack(folder / 'stack', [self.named.section(str(uuid.uuid4()), call_timeout=2)],
                           f'sqlite:///{folder}/pool.sqlite', manager={
                               **QUICK, 'periodic_sync_interval': '3600', 'contents_audit_interval': '0'})

    def create(self) -> None:
        self.zone = self.stack.import_zone(
            f'$ORIGIN example.com.\n@ 300 IN SOA ns1.example.org. hostmaster.example.com. {SERIAL} 3600 600 86400 300\n'
            'www 300 IN A 192.0.2.1\n')
        self.stack.wait_for(self.zone)
        recordsets = self.stack.request('GET', f'/v2/zones/{self.zone}/recordsets?type=A', 200)['recordsets']
        self.recordset = recordsets[0]['id']

    def edit(self) -> int:
        """Make the zone a primary one, change it with nsupdate's message, and give it back; its serial then."""
        secondary = self.named.command(f'showzone {NAME}').text.split(' ', 2)[2].replace('masterfile-format text;', '')
        copy = dns.zone.from_xfr(dns.query.xfr('127.0.0.1', NAME, port=self.named.port, relativize=False),
                                 relativize=False)
        # Another file each time: a secondary zone that is taken away may still be written into its own.
        edited = f'edited-{uuid.uuid4()}.db'
        copy.to_file(str(self.named.folder / edited), relativize=False)
        file = f'file "{edited}"; masterfile-format text;'
        self._replace(f'{{ type primary; {file} allow-update {{ any; }}; }};')
        update = dns.update.UpdateMessage(NAME)
        update.add('by-hand', 300, 'A', '192.0.2.254')
        assert dns.query.tcp(update, '127.0.0.1', 5, self.named.port).rcode() == dns.rcode.NOERROR
        # It answers at once where a dump is under way already, which may be one from before the update.
        wait_until(lambda: self.named.command(f'sync -clean {NAME}').result == 0
                   and 'by-hand' in (self.named.folder / edited).read_text(), 'the edit is in the file')
        self._replace(re.sub('file "[^"]*";', file, secondary))
        wait_until(lambda: self.addresses(f'by-hand.{NAME}') == ['192.0.2.254'], 'the edit is served')
        serial = self.named.serial(NAME)
        assert serial is not None
        return serial

    def _replace(self, settings: str) -> None:
        for command in (f'delzone {NAME}', f'addzone {NAME} {settings}'):
            assert self.named.command(command).result == 0, command

    def addresses(self, owner: str) -> list[str]:
        answer = self.named.query(owner, 'A').answer
        return [rdata.to_text() for rrset in answer for rdata in rrset]


@pytest.fixture
def edited(tmp_path: pathlib.Path) -> Iterator[Edited]:
    pool = Edited(tmp_path)
    with pool.named, pool.stack:
        pool.create()
        yield pool


def test_a_change_that_gets_the_serial_of_an_edit_is_active_only_with_the_contents(edited: Edited) -> None:
    stack = edited.stack
    for edits, address in enumerate(('192.0.2.2', '192.0.2.3'), 1):  # the second round is like the first
        serial = edited.edit()
        assert serial == stack.zone(edited.zone)['serial'] + 1
        changed = stack.set_recordset(edited.zone, edited.recordset, address)
        assert stack.zone(edited.zone)['serial'] == serial and changed['status'] == 'PENDING'
        stack.wait_for(edited.zone)
        assert (edited.addresses(OWNER), edited.addresses(f'by-hand.{NAME}')) == ([address], [])
        wait_until(lambda: stack.logs(100_000).count('had other contents of example.com. than the pool') == edits,
                   'the edit is logged')
    stack.set_recordset(edited.zone, edited.recordset, '192.0.2.4')
    stack.wait_for(edited.zone)
    assert edited.addresses(OWNER) == ['192.0.2.4']
