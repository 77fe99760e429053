"""OpenStack Networking, which is asked for floating IPs with the token of the request, by openstacksdk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import falcon

from designate_pool.errors import Refused, ServiceUnavailable
from designate_pool.settings import NeutronSettings


class NeutronFloatingIp(NamedTuple):
    region: str
    id: str
    address: str


class NeutronClient:
    def __init__(self, settings: NeutronSettings) -> None:
        self._settings = settings

    def floating_ips(self, req: falcon.Request, project_id: str, region: str | None = None) -> list[NeutronFloatingIp]:
        """The floating IPs of a project that the token of the request sees.

        :param region: None for all
        :raises Refused: when the catalog has no Neutron there, one answers otherwise, or openstacksdk is not installed
        :raises ServiceUnavailable: when one does not answer
        """
        endpoints = [endpoint for endpoint in self._settings.endpoints or self._in_catalog(req)
                     if region in (None, endpoint[0])]
        if not endpoints:
            where = '' if region is None else f' in {region}'
            raise Refused('no_endpoint', 'Neither the configuration nor the catalog of the token has a '
                                         f'{self._settings.endpoint_type} of Neutron{where}.', 403)
        token = req.get_header('X-Auth-Token') or ''
        return [floating_ip for where, url in endpoints for floating_ip in self._ask(where, url, token, project_id)]

    def _in_catalog(self, req: falcon.Request) -> Iterator[tuple[str, str]]:
        for service in json.loads(req.get_header('X-Service-Catalog') or '[]'):
            if service.get('type') == 'network':
                for endpoint in service.get('endpoints', ()):
                    if self._settings.endpoint_type in endpoint:
                        yield endpoint.get('region') or '', endpoint[self._settings.endpoint_type]

    def _ask(self, region: str, url: str, token: str, project_id: str) -> list[NeutronFloatingIp]:
        try:
            import openstack
            from keystoneauth1 import exceptions, session, token_endpoint
        except ImportError as error:
            raise Refused('not_implemented', f'Floating IPs need more packages ({error}); instead, install them with '
                                             "pip install 'designate-pool[neutron]'.", 501) from None
        asked = session.Session(auth=token_endpoint.Token(url, token), cert=self._settings.client_certificate_file,
                                verify=not self._settings.insecure and (self._settings.ca_certificates_file or True),
                                timeout=self._settings.timeout, app_name='designate-pool')
        try:
            connection: Any = openstack.connection.Connection(session=asked)
            floating_ips = connection.network.ips(project_id=project_id)
            return [NeutronFloatingIp(region, floating_ip.id, floating_ip.floating_ip_address)
                    for floating_ip in floating_ips]
        except (exceptions.ConnectFailure, exceptions.DiscoveryFailure) as error:
            raise ServiceUnavailable(service=f'Neutron in {region}', why=_said(error)) from error
        except Exception as error:  # what the libraries raise when an answer is not what they expect
            raise Refused('neutron_communication_failure', f'Neutron in {region} answers, but not with floating IPs: '
                                                           f'{_said(error)}.', 502) from error


def _said(error: Exception) -> str:
    return ' '.join(str(error).split())[:500] or type(error).__name__
