"""A client of Designate's API, for what is taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

from designate_pool.errors import BadInput

#: Seconds for one answer.
_TIMEOUT = 120.0
#: Characters of an answer that an error quotes.
_QUOTED = 300


class CallRefused(Exception):
    """Designate does not accept a change; with the request and its answer."""


class DesignateApi:
    """
    :param url: without ``/v2``
    :param headers: of each request; those that say who asks are among them
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url.rstrip('/')
        self._session = requests.Session()
        self._session.trust_env = False
        # Designate then accepts changes of zones of every project, and the deletion of zones that are shared there.
        self._session.headers.update({'X-Auth-All-Projects': 'true', 'X-Designate-Delete-Shares': 'true', **headers})

    def close(self) -> None:
        self._session.close()

    def call(self, method: str, path: str, body: Any = None, project_id: str = '') -> Any:
        """The body of the answer.

        :param project_id: in whose name it is done; '' for one's own
        :raises CallRefused: when it is not accepted
        :raises BadInput: when there is no answer, or nobody may ask so
        """
        try:
            answer = self._session.request(method, f'{self._url}/v2/{path}', json=body, timeout=_TIMEOUT, headers={
                'X-Auth-Sudo-Project-ID': project_id} if project_id else {})
        except requests.RequestException as error:
            raise BadInput(why=f"Designate's API at {self._url} does not answer ({type(error).__name__})") from None
        if answer.status_code in (401, 403) or answer.status_code >= 500:
            raise BadInput(why=f"Designate's API at {self._url} answers {answer.status_code} to {method} /v2/{path}: "
                               f'{_quoted(answer)}')
        if answer.status_code >= 300:
            raise CallRefused(f'{method} /v2/{path}: {answer.status_code} {_quoted(answer)}')
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise BadInput(why=f"Designate's API at {self._url} does not answer with JSON") from None


def _quoted(answer: requests.Response) -> str:
    return ' '.join(answer.text.split())[:_QUOTED]
