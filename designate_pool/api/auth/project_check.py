"""Whether Keystone knows a project that a request gives something to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import falcon

from designate_pool.errors import Refused

LOG = logging.getLogger(__name__)
#: Called with a request and the id of a project; raises :class:`Refused`.
CheckProject = Callable[[falcon.Request, str], None]
_SECTION = 'keystone_authtoken'
#: Seconds that Keystone may take.
_PATIENCE = 10.0


def any_project(req: falcon.Request, project_id: str) -> None:
    """Every project is taken for one that exists."""


class KeystoneProjects:
    """Asks Keystone, as the requester.  Who may not see the project, and a Keystone without an answer, count as a yes.

    :param conf: oslo.config's object, with the options of ``[keystone_authtoken]`` read
    """

    def __init__(self, conf: Any) -> None:
        from keystoneauth1 import session

        section = conf[_SECTION]
        named = conf[section.auth_section or _SECTION]
        self._session = session.Session(verify=False if section.insecure else section.cafile or True,
                                        timeout=_PATIENCE)
        base = (getattr(named, 'auth_url', None) or section.www_authenticate_uri or '').rstrip('/')
        self._base = base if base.endswith('/v3') else f'{base}/v3'

    def check(self, req: falcon.Request, project_id: str) -> None:
        """Refuse a project that Keystone does not know.

        :raises Refused: when Keystone says that there is no such project
        """
        from keystoneauth1 import exceptions

        try:
            reply = self._session.get(f'{self._base}/projects/{quote(project_id, "")}', authenticated=False,
                                      headers={'X-Auth-Token': req.get_header('X-Auth-Token') or ''},
                                      raise_exc=False)
        except exceptions.ClientException as error:
            LOG.warning('Keystone was not asked for the project %s: %s', project_id, error)
            return
        if reply.status_code == 404:
            raise Refused('invalid_project', f'{project_id} is no project that Keystone knows.')
