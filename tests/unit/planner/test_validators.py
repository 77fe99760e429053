"""octoDNS's validators in a configuration, as our rules."""

from __future__ import annotations

import textwrap

import octodns.record
import octodns.zone
import pytest

from designate_pool.planner import master, validators
from designate_pool.planner.zone.zone import Zone
from tests.unit.planner.conftest import Config

NAME = 'example.com.'
CONTENTS = """
@     300 NS    ns1
@     300 MX    10 alias
@     300 MX    20 missing
alias 300 CNAME b.example.net.
_a    300 SRV   0 0 1 alias
loop  300 CNAME loop
"""


def setup(manager: str, zone: str = '') -> str:
    return textwrap.dedent(f'''
        manager: {{validators: {{{manager}}}}}
        providers:
          in: {{class: fake}}
        zones:
          example.com.: {{sources: [in], targets: [], validators: {{{zone}}}}}
        ''')


def broken(ids: frozenset[str], text: str = CONTENTS) -> set[str]:
    zone = Zone(NAME)
    zone.add_pairs(master.read(text, NAME, require_soa=False))
    return {f'{violation.rule.id} {violation.type}' for violation in validators.warnings(zone, ids)}


@pytest.mark.parametrize(('manager', 'zone', 'told'), [
    ('', '', set()), ('enabled: [legacy]', '', set()),
    ('enabled: [strict]', '', {'cname-loop CNAME', 'target-alias MX', 'target-alias SRV', 'target-missing NS'}),
    ('enabled: [best-practice]', '', {'target-missing MX', 'ns-count NS'}),
    ('enabled: [strict], zone: {disable_validators: [no-cname-loop, mail]}', 'zone: {disable_validators: '
     '[mx-target-not-cname, glue-for-in-zone-ns]}', {'target-alias SRV'}),
    ('zone: {validators: [mx-target-not-cname, cname-coexistence]}', '', {'target-alias MX'}),
    ("record: {validators: {'*': [no-cname-loop]}, disable_validators: {SRV: [srv-name]}}", '', {'cname-loop CNAME'}),
], ids=['none', 'usual', 'strict', 'best practice', 'disabled', 'single', 'of records'])
def test_what_is_enabled_is_told_as_warnings(config: Config, manager: str, zone: str, told: set[str]) -> None:
    assert broken(config.read(setup(manager, zone)).zones[NAME].warnings) == told


def test_the_name_servers_of_a_zone_that_has_none_of_its_own_are_not_counted() -> None:
    assert broken(frozenset({'multi-value-ns'}), 'www 300 A 192.0.2.1\n') == set()


def test_what_cannot_be_disabled_and_what_is_unknown(config: Config) -> None:
    known = ', '.join(sorted(validators.WARNINGS))
    assert config.mistakes(setup(
        'enabled: [lax], zone: {validators: [mail, x], disable_validators: [root-cname]}, enabeld: []',
        'record: {disable_validators: {A: [x], MX: mx-value}}')) == [
        'manager.validators.enabeld: there is no such key (did you mean enabled?)',
        'manager.validators.enabled: there is no set lax; there are legacy, strict, best-practice',
        f'manager.validators.zone.validators: mail is not checked here; there are {known}',
        f'manager.validators.zone.validators: x is not checked here; there are {known}',
        'manager.validators.zone.disable_validators: root-cname cannot be disabled: an RFC forbids what it is against; '
        'a zone or record that is lenient may have it, unless its target is the pool',
        f'zones.example.com..validators.record.disable_validators.A: x is unknown; there are {known}',
        'zones.example.com..validators.record.disable_validators.MX: must be a list of texts']


def test_classes_of_validators_are_not_run(config: Config) -> None:
    assert config.mistakes(setup('') + 'validators: {mine: {class: a.B}}\n')[0].startswith(
        'validators: classes of validators are not run here')


def test_every_id_of_octodns_is_known() -> None:
    available = octodns.record.Record.validators.available()
    ids = {validator.id for of_kind in available.values() for of_type in of_kind.values() for validator in of_type
           if type(validator).__module__.startswith('octodns.')}
    ids |= set(octodns.zone.Zone.validators.available)
    assert {id for id in ids if not id.startswith('_')} == {*validators.ALWAYS, *validators.NOT_HERE,
                                                            *validators.WARNINGS}
