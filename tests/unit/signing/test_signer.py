"""Signing changes: always what signing the whole zone gives, and always valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designate_pool.signing import signer, verifier
from tests.unit.signing.zones import (APEX, AT_APEX, CONTENTS, MARGIN, NOW, PAIR, TIMES, SignedZone, changes_of,
                                      records_of, said_by, unsigned_part)

STEPS = st.lists(CONTENTS, max_size=4)


def check(contents: Any, steps: Sequence[Any], denial: str) -> SignedZone:
    """Sign a zone, and each of the steps that change it; after each it is valid, and what signing it anew gives."""
    records = records_of(contents) | set(AT_APEX)
    zone = SignedZone(records, denial)
    assert verifier.verify_zone(zone.whole(), NOW, MARGIN) == []
    for gone, added in changes_of(steps, records):
        difference, defects = zone.change(gone, added)
        assert defects == []
        anew = signer.sign_zone(APEX, zone.records, zone.soa, PAIR, TIMES, denial)
        assert unsigned_part(zone.signed) == unsigned_part(anew)
        assert verifier.verify_zone(zone.whole(), NOW, MARGIN) == []
    return zone


@pytest.mark.parametrize('denial', ['NSEC', 'NSEC3'])
@given(contents=CONTENTS, steps=STEPS)
@settings(max_examples=150)
def test_changes_lead_to_what_signing_anew_does(contents: Any, steps: Any, denial: str) -> None:
    check(contents, steps, denial)


@pytest.mark.parametrize('denial', ['NSEC', 'NSEC3'])
@given(contents=CONTENTS, steps=STEPS)
@settings(max_examples=10)
def test_other_programs_agree(contents: Any, steps: Any, denial: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    zone = check(contents, steps, denial)
    folder = tmp_path_factory.mktemp('zone')
    for program in (['dnssec-verify', '-z', '-o', APEX], ['ldns-verify-zone']):
        assert said_by(program, zone.whole(), folder) == ''
