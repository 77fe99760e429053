"""Hostile zone files: an import refuses them with the line, or the record; and so does ``zone validate FILE``."""

from __future__ import annotations

import io
import pathlib
import re

import pytest

from designate_pool.central import import_worker, zonefile_parser
from designate_pool.central.rules import domains, recordset_edits
from designate_pool.central.rules.quotas import ProjectQuotas
from designate_pool.central.validation.requests import NewDomain
from designate_pool.cli.app import Shell
from designate_pool.errors import PoolError
from designate_pool.model import Pool
from designate_pool.protocol.zonefile import validated
from tests.fixtures.hostile_files import FILES, zone_file
from tests.fixtures.hostile_records import RECORDS
from tests.fixtures.observed_central import BEGAN

QUOTAS = ProjectQuotas(zone_recordsets=10_000, zone_records=10_000)
WHERE = re.compile(r'^line \d+(, \w+)?$|^text$|^zone file$|^$')


def mistakes_of_import(text: str) -> list[tuple[str, str]]:
    """Each with its place."""
    try:
        new, contents = zonefile_parser.parse(import_worker._lines(validated([text.encode()])), QUOTAS)
        domain = domains.create('0' * 32, NewDomain(new.name, 'a@example.com'), Pool('default'), '', None, 0, BEGAN)
        recordset_edits.plan(domain, (), list(contents), must_be_new=True)
    except PoolError as error:
        all_of_them: list[tuple[str, str]] = error.kwargs.get('all') or [('', str(error))]
        return all_of_them
    return []


@pytest.mark.parametrize('case', [*RECORDS, *FILES])
def test_an_import_and_the_command_agree(case: str, tmp_path: pathlib.Path) -> None:
    text = zone_file(case, f'{case}.example.com.')
    mistakes = mistakes_of_import(text)
    assert all(WHERE.match(where) for where, _ in mistakes), mistakes
    file = tmp_path / 'zone'
    file.write_bytes(text.encode())
    out, err = io.StringIO(), io.StringIO()
    code = Shell(stdin=io.StringIO(), stdout=out, stderr=err).run(['zone', 'validate', str(file)])
    assert (code != 0) == bool(mistakes), (mistakes, out.getvalue(), err.getvalue())
