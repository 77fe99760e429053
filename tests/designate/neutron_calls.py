"""What Neutron's own DNS driver does with the API; runs where Neutron is installed, from ``client_services``."""

from __future__ import annotations

import importlib
import json
import sys
import types
from typing import Any


def main(given: dict[str, str]) -> None:
    driver: Any = importlib.import_module('neutron.services.externaldns.drivers.designate.driver')
    errors: Any = importlib.import_module('neutron_lib.exceptions.dns')
    loading: Any = importlib.import_module('keystoneauth1.loading')
    conf = driver.CONF
    conf([], project='neutron')
    conf.register_opts(loading.get_auth_plugin_conf_options('password'), group='designate')
    for name, value in {'url': f'{given["url"]}/v2', 'allow_reverse_dns_lookup': True, 'auth_type': 'password',
                        'auth_url': f'{given["keystone"]}/v3', 'username': given['admin'],
                        'password': given['password'], 'project_name': given['admin'], 'user_domain_id': 'default',
                        'project_domain_id': 'default'}.items():
        conf.set_override(name, value, 'designate')
    context = types.SimpleNamespace(auth_token=given['token'])
    user, admin = driver.get_clients(context)
    addresses = ['192.0.2.7', '2001:db8::7']

    def found(client: Any, zone: str, *types_of: str) -> dict[str, list[str]]:
        return {each['name']: each['records'] for each in client.recordsets.list(zone) if each['type'] in types_of}

    ours = driver.Designate()
    for again in range(2):
        ours.create_record_set(context, 'example.com.', 'vm', addresses)
        for rtype, address in zip(('A', 'AAAA'), addresses):
            assert found(user, 'example.com.', rtype) == {'vm.example.com.': [address]}, rtype
        assert found(admin, '2.0.192.in-addr.arpa.', 'PTR') == {'7.2.0.192.in-addr.arpa.': ['vm.example.com.']}
        zones = {each['name']: each for each in admin.zones.list()}
        assert len(zones) == 2 and {each['email'] for each in zones.values()} == {'admin@example.com'}
        for zone, name, error in (('example.net.', 'vm', errors.DNSDomainNotFound),
                                  ('example.com.', 'vm', errors.DuplicateRecordSet)):
            try:
                ours.create_record_set(context, zone, name, addresses[:1])
            except error:
                continue
            raise AssertionError(f'{name} in {zone}: no {error.__name__}')
        ours.delete_record_set(context, 'example.com.', 'vm', addresses)
        assert found(user, 'example.com.', 'A', 'AAAA') == {}
        assert all(found(admin, zone, 'PTR') == {} for zone in zones), again


if __name__ == '__main__':
    main(json.loads(sys.argv[1]))
