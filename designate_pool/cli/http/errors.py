"""The errors of commands: one line for the user that says what to do, or a line for each mistake in a file."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

#: What to do, by the type of the API's error.
_HINTS = {
    'zone_not_found': "'designate-pool zone list' shows the zones there are.",
    'recordset_not_found': "'designate-pool recordset list ZONE' shows those there are.",
    **dict.fromkeys(('name_taken', 'illegal_child', 'illegal_parent'),
                    'The name, or one above or below it, may belong to another project. With --all-projects an '
                    'administrator can create it anyway.'),
    'duplicate_zone': "Change it with 'designate-pool zone set', or delete it first.",
    'duplicate_recordset': "Change it with 'designate-pool recordset set'.",
    'domain_being_deleted': "'designate-pool zone explain' shows which servers have it yet; try again when it is gone.",
    'server_not_found': "'designate-pool server list' shows the servers there are.",
    'wrong_server_state': "'designate-pool server list' shows the state of each.",
    'bad_configuration': 'Nothing has changed; correct the file and reload again.',
    'plan_not_found': "'designate-pool plan list' shows the plans there are.",
    'wrong_plan_state': "'designate-pool plan list' shows the state of each; 'designate-pool plan' makes a new one.",
    'plan_moved': "Nothing was changed; make a new plan with 'designate-pool plan' and look at it.",
    'serial_moved': "Nothing was changed; make a new plan with 'designate-pool plan' and look at it.",
    'pool_not_found': "'designate-pool pool list' shows the pools there are.",
    'tsigkey_not_found': "'designate-pool tsigkey list' shows the keys there are.",
    'duplicate_tsigkey': "Change it with 'designate-pool tsigkey set', or delete it first.",
    'tld_not_found': "'designate-pool tld list' shows those there are.",
    'blacklist_not_found': "'designate-pool zone blacklist list' shows those there are.",
    'invalid_zone_name': "'designate-pool tld list' and 'designate-pool zone blacklist list' show to administrators "
                         'which names zones may have.',
    'zone_transfer_request_not_found': "'designate-pool zone transfer request list' shows those there are.",
    'shared_zone_not_found': "'designate-pool zone share list ZONE' shows those there are.",
    'zone_is_shared': "'designate-pool zone delete --delete-shares' deletes it anyway.",
    'shared_zone_has_recordsets': "'designate-pool recordset list ZONE' shows them.",
    'zone_import_not_found': "'designate-pool zone import list' shows the imports there are.",
    'zone_export_not_found': "'designate-pool zone export list' shows the exports there are.",
    'service_unavailable': 'Check that designate-pool-central, its database and broker are running, then try again.',
    'identity_failed': "The API's log says more; its section [keystone_authtoken] may be wrong.",
    'internal_error': "The API's log says more; look for {request_id}.",
    'unauthorized': "Give one as --token, in DESIGNATE_POOL_TOKEN or in a cloud; 'designate-pool-manage token create' "
                    'makes one.',
    'forbidden': 'Ask for a role that may do it, or name another project with --project.',
    'over_quota': "'designate-pool quota show' shows the limits; an administrator can raise it with 'designate-pool "
                  "quota set'.",
    'too_many_waits': 'Changes that were accepted continue in the background.',
}
#: The type whose hint is shown, by the status of HTTP, where the type of the error has none.
_BY_STATUS = {401: 'unauthorized', 403: 'forbidden'}


class CliError(Exception):
    """The command failed; the message is for the user.

    :ivar code: the exit code
    """

    code = 1


class ApiRefusal(CliError):
    """The API answered with an error.

    :ivar status: of HTTP
    :ivar type: the error's code in the API
    """

    def __init__(self, status: int, fault: Json) -> None:
        self.status = status
        self.type = str(fault.get('type', ''))
        message = str(fault.get('message') or f'The API answered with {status}.')
        if self.type != 'bad_configuration':
            message = ' '.join(message.split())
        kind = self.type if self.type in _HINTS else _BY_STATUS.get(status, self.type)
        super().__init__(with_hint(message, kind, fault.get('request_id') or 'the request'))


def with_hint(message: str, type: str, request_id: str = 'the request') -> str:
    """*message* with a hint on what to do.

    :param type: the error's code in the API
    """
    hint = _HINTS.get(type, '').format(request_id=request_id)
    return '\n'.join((message, hint)) if '\n' in message else f'{message} {hint}'.strip()
