"""What Heat's engine does with the API for its DNS resources; runs where Heat is installed, from ``client_services``.

Whole stacks are created, checked, updated and deleted, with Heat's tables in SQLite in this process.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from typing import Any

HEAD = {'heat_template_version': '2021-04-16'}


def main(given: dict[str, str]) -> None:
    conf = importlib.import_module('oslo_config.cfg').CONF
    importlib.import_module('heat.common.config')
    conf([], project='heat', default_config_files=[])
    importlib.import_module('oslo_db.options').set_defaults(conf, connection=f'sqlite:///{given["folder"]}/heat.sqlite')
    importlib.import_module('heat.common.messaging').setup('fake://', optional=True)
    # Trusts are Keystone's; the stand-in has none.
    conf.set_override('deferred_auth_method', 'password')
    database: Any = importlib.import_module('heat.db.api')
    models: Any = importlib.import_module('heat.db.models')
    models.BASE.metadata.create_all(database.get_engine())
    importlib.import_module('heat.engine.clients').initialise()
    importlib.import_module('heat.engine.resources').initialise()
    context: Any = importlib.import_module('heat.common.context').RequestContext(
        username='one', password=given['password'], project_id=given['project_id'], user_id=given['user_id'],
        user_domain_id='default', auth_url=f'{given["keystone"]}/v3', is_admin=False, roles=['member'])
    heat = types.SimpleNamespace(
        context=context, template=importlib.import_module('heat.engine.template').Template,
        stack=importlib.import_module('heat.engine.stack').Stack, client=context.clients.client('designate'))
    zones_and_recordsets(heat)
    refused(heat)
    secondary(heat, given['master'])


def made(heat: Any, name: str, resources: dict[str, Any]) -> Any:
    """A stack of these resources, not yet created."""
    found = unstored(heat, name, resources)
    found.t.store(heat.context)
    found.store()
    return found


def unstored(heat: Any, name: str, resources: dict[str, Any]) -> Any:
    """One that another becomes by its update."""
    found = heat.stack(heat.context, name, heat.template({**HEAD, 'resources': resources}))
    found.validate()
    return found


def expect(stack: Any, action: str, status: str = 'COMPLETE') -> None:
    assert stack.state == (action, status), (stack.state, stack.status_reason, [
        (each.name, each.state, each.status_reason) for each in stack.resources.values()])


def zones_and_recordsets(heat: Any) -> None:
    zone = {'type': 'OS::Designate::Zone', 'properties': {
        'name': 'heat.example.org.', 'email': 'hostmaster@example.com', 'ttl': 900, 'description': 'first',
        'attributes': {'tier': 'gold'}}}
    www = {'type': 'OS::Designate::RecordSet', 'properties': {
        'zone': {'get_resource': 'zone'}, 'name': 'www.heat.example.org.', 'type': 'A', 'ttl': 300,
        'records': ['192.0.2.1', '192.0.2.2'], 'description': 'two'}}
    by_name = {'type': 'OS::Designate::RecordSet', 'depends_on': 'zone', 'properties': {
        'zone': 'heat.example.org.', 'name': 'mail.heat.example.org.', 'type': 'MX', 'records': ['10 mx.example.org.']}}
    stack = made(heat, 'zones', {'zone': zone, 'www': www})
    stack.create()
    expect(stack, 'CREATE')
    zone_id = stack['zone'].resource_id
    there = heat.client.zones.get(zone_id)
    assert (there['name'], there['ttl'], there['description'], there['attributes'], there['status']) == (
        'heat.example.org.', 900, 'first', {'tier': 'gold'}, 'ACTIVE'), there
    assert int(stack['zone'].FnGetAtt('serial')) == there['serial']
    assert sorted(stack['www'].FnGetAtt('show', 'records')) == ['192.0.2.1', '192.0.2.2']
    stack.check()
    expect(stack, 'CHECK')

    # The constraint of a zone by its name is checked by the engine before anything is created.
    changed = unstored(heat, 'zones', {
        'zone': {**zone, 'properties': {**zone['properties'], 'ttl': 1200, 'description': 'second',
                                        'email': 'other@example.com'}},
        'www': {**www, 'properties': {**www['properties'], 'records': ['192.0.2.3'], 'ttl': 60}},
        'mail': by_name})
    stack.update(changed)
    expect(stack, 'UPDATE')
    there = heat.client.zones.get(zone_id)
    assert (there['ttl'], there['description'], there['email']) == (1200, 'second', 'other@example.com'), there
    records = {each['name']: (each['records'], each['ttl']) for each in heat.client.recordsets.list(zone_id)
               if each['type'] in ('A', 'MX')}
    assert records == {'www.heat.example.org.': (['192.0.2.3'], 60),
                       'mail.heat.example.org.': (['10 mx.example.org.'], None)}, records
    assert stack['zone'].resource_id == zone_id
    # One that was deleted outside of Heat is found missing, and is no obstacle to the end.
    heat.client.recordsets.delete(zone_id, stack['www'].resource_id)
    stack = heat.stack.load(heat.context, stack_id=stack.id)  # as the engine does for each request
    stack.delete()
    expect(stack, 'DELETE')
    assert [each for each in heat.client.zones.list() if each['name'] == 'heat.example.org.'] == []


def refused(heat: Any) -> None:
    """What the API refuses becomes the reason of a failed stack."""
    stack = made(heat, 'refused', {'zone': {'type': 'OS::Designate::Zone', 'properties': {
        'name': 'example.com.', 'email': 'hostmaster@example.com'}}})
    stack.create()
    expect(stack, 'CREATE', 'FAILED')
    assert 'Conflict' in stack.status_reason and 'example.com.' in stack.status_reason, stack.status_reason
    stack.delete()
    expect(stack, 'DELETE')


def secondary(heat: Any, master: str) -> None:
    stack = made(heat, 'secondary', {'zone': {'type': 'OS::Designate::Zone', 'properties': {
        'name': 'second.example.org.', 'type': 'SECONDARY', 'primaries': [master]}}})
    stack.create()
    expect(stack, 'CREATE')
    there = heat.client.zones.get(stack['zone'].resource_id)
    assert (there['type'], there['masters'], there['status']) == ('SECONDARY', [master], 'ACTIVE'), there
    stack.delete()
    expect(stack, 'DELETE')


if __name__ == '__main__':
    main(json.loads(sys.argv[1]))
