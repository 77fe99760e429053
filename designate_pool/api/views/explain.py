"""Why is a zone not ACTIVE, and what can be done about it?  Pure: what the API shows in, words out.

For each server one sentence says where it stands and, where somebody can do something, another one what: the advice for
the reason of its last error (:data:`ADVICE`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from designate_pool.api.schema.answers import Json, read_moment
from designate_pool.model import Reason, ServiceStatus
from designate_pool.serial import newer

_UNITS = ((86400, 'day'), (3600, 'hour'), (60, 'minute'), (1, 'second'))
_DOING = {'CREATE': 'being created', 'UPDATE': 'being changed', 'DELETE': 'being deleted'}
_TASKS = {'CREATE': 'creating the zone at serial {}', 'UPDATE': 'getting to serial {}', 'DELETE': 'deleting the zone'}

#: What to do about a server whose operation is in ERROR, by reason.
ADVICE = {
    Reason.PARKED: "decide on the plan: 'designate-pool plan show {plan}' shows it, 'designate-pool apply {plan}' "
                   'approves it',
    Reason.NO_RETRANSFER: 'transfer the zone to the server again by hand, or delete it there so that the pool creates '
                          'it again; the pool then compares it automatically',
    Reason.DIVERGED: 'nothing yet: the pool makes it transfer the zone again; find out who else changes zones on it',
    Reason.UNCHECKED: 'let the pool manager transfer its zones, to compare them',
    Reason.SIGNS: "turn signing off in the server's own configuration: a zone that it signs has serials and contents "
                  'of its own',
    Reason.UNREACHABLE: 'check that the server runs and listens there, and that no firewall is between; the pool '
                        'retries automatically',
    Reason.TIMEOUT: 'check whether the server runs, is overloaded or is behind a firewall; the pool retries '
                    'automatically',
    Reason.NO_ACCESS: 'give the user that the pool manager runs as access to what the error names',
    Reason.BAD_TIME: "set the server's clock right, or this machine's: they are too far apart for signed messages",
    Reason.BAD_KEY: 'compare the key of its section in the configuration with the one that the server has; the pool '
                    'retries automatically',
    Reason.NOT_SIGNED: 'compare the key of its section in the configuration with the one that the server has, and the '
                       'clocks; the pool retries automatically',
    Reason.BAD_TLS: 'compare the certificates that its section names with those of the server',
    Reason.NOT_PRIMARY: 'create the zone on the server as a primary zone',
    Reason.NOT_AUTH: 'check whether its copy of the zone has expired and whether it can transfer from MiniDNS: its own '
                     'log says why not',
    Reason.STALE: 'check whether it can transfer from MiniDNS: its own log says why not',
    Reason.NO_ZONE: "it lost the zone or never fetched it: its own log says why; 'designate-pool server resync "
                    "{server} --fix' repairs all of its zones",
    Reason.UPDATE_REFUSED: 'let it accept updates (allow-update), or correct the record that its own log names: some '
                           'servers refuse name servers and mail hosts without an address in the zone',
    Reason.REFUSED: "let the server answer this machine's queries (its allow-query or access list)",
    Reason.SERVFAIL: 'its copy of the zone is broken or has expired: its own log says why',
    Reason.NO_PRIMARIES: "set 'primaries' in its section of the configuration",
    Reason.NOT_CONFIGURED: "add what the error names to the server's own configuration, or correct its section",
    Reason.NO_ZONE_CHANGES: "let zones be added and removed in the server's own configuration; 'designate-pool-manage "
                            "config check' says how",
    Reason.BUSY: "see who else is changing the server's own configuration; the pool retries automatically",
    Reason.CONFLICT: 'do on the server what the error says; the pool retries automatically',
}
_OTHERWISE = 'correct what the error names; the pool retries automatically'
#: Services that a pool cannot do without: what users call them, and what nobody does while none runs.
_NEEDED = {'minidns': ('MiniDNS', 'its servers can neither transfer zones nor be asked which serials they serve'),
           'pool_manager': ('pool manager', 'nothing is done on its servers')}
_NEVER = datetime.min.replace(tzinfo=timezone.utc)


def explain(shown: Mapping[str, Any], now: datetime, missing: Mapping[str, datetime | None] | None = None,
            culprits: Sequence[str] = (), locked: str = '', unrepaired: Mapping[str, str] | None = None,
            probe_interval: float | None = None) -> Json:
    """What stands between a zone and ACTIVE.

    :param shown: what ``/v2/zones/{id}/servers`` says
    :param missing: see :func:`missing_services`
    :param locked: why it cannot be changed, in one sentence; '' if it can
    :param culprits: what rules have against its records, if servers do not take it
    :param unrepaired: what a comparison found and nothing repairs yet, by server
    :param probe_interval: seconds between probes of a dead server; None if that is not known
    """
    missing, unrepaired = missing or {}, unrepaired or {}
    shown = {**shown, 'unrepaired': unrepaired, 'probe_interval': probe_interval}
    if missing:  # whatever the rows say, nothing is tried
        shown = {**shown, 'servers': [{**server, 'next_attempt_at': None, 'deadline_at': None}
                                      for server in shown['servers']]}
    servers = [{**server, 'state_of': state_of(server, shown, now, missing), 'what_to_do': what_to_do(server)}
               for server in shown['servers']]
    return {
        'summary': ' '.join([*_of_missing(missing, now), summary(shown), locked]).strip(),
        'degraded': shown['status'] == 'ACTIVE' and any(
            not server['current'] or server['name'] in unrepaired for server in counting(shown)),
        'lacking': None if shown['freeze'] or shown['release'] else lacking(shown),
        'servers': servers,
        'advice': [f"Start designate-pool-{name.rpartition('_')[2]}: 'designate-pool service list' shows which "
                   'programs run.' for name in missing] or [
                       *_advice_for_frozen(shown),
                       *(f'Correct or delete the likely cause: {culprit}' for culprit in culprits[:3]),
                       *(f"{name}: 'designate-pool server resync {name} --fix' repairs what was found there."
                         for name in sorted(unrepaired)),
                       *advice(shown, servers, now)],
    }


def missing_services(services: Iterable[ServiceStatus]) -> dict[str, datetime | None]:
    """The services that a pool needs and that run nowhere; since when, None if none was seen at all.

    :param services: of the pool
    """
    last: dict[str, datetime | None] = dict.fromkeys(_NEEDED)
    for service in services:
        if service.service_name in last and service.status == 'UP':
            del last[service.service_name]
        elif service.service_name in last:
            last[service.service_name] = max(service.heartbeated_at, last[service.service_name] or _NEVER)
    return last


def _of_missing(missing: Mapping[str, datetime | None], now: datetime) -> Iterator[str]:
    for name, since in missing.items():
        what, undone = _NEEDED[name]
        length = '' if since is None else f' since {since:%Y-%m-%d %H:%M:%S} UTC ({age(since, now)})'
        yield f'No {what} of the pool runs{length}: {undone}.'


def counting(shown: Mapping[str, Any]) -> list[Json]:
    """The servers that the threshold is about."""
    return [server for server in shown['servers'] if server['counts']]


def summary(shown: Mapping[str, Any]) -> str:
    """Where the zone stands, in one sentence."""
    name, serial, status, servers = shown['zone_name'], shown['content_serial'], shown['status'], counting(shown)
    missing = [server['name'] for server in servers if not server['current']]
    secondary = shown.get('secondary')
    if secondary and not secondary['served'] and shown['action'] != 'DELETE':
        return _not_transferred(name, status, secondary)
    if status == 'ACTIVE':
        if missing:
            verb = 'is' if len(missing) == 1 else 'are'
            return (f'{name} is ACTIVE at serial {serial} but degraded: {len(missing)} of {len(servers)} servers '
                    f'{verb} behind ({", ".join(missing)}).')
        if not servers:
            return f'{name} is ACTIVE at serial {serial}, but no server of its pool counts now.'
        if others := [server['name'] for server in servers if server['name'] in shown['unrepaired']]:
            return (f'{name} is ACTIVE at serial {serial}, but a comparison found something else on '
                    f'{", ".join(others)}.')
        every = 'every server' if len(servers) == len(shown['servers']) else 'every server that counts'
        return f'{name} is ACTIVE at serial {serial} on {every}.'
    what = _DOING.get(shown['action'], 'settling')
    if shown['freeze']:
        return f'{name} is {status}, {what}: that waits, since its pool is frozen{frozen(shown["freeze"])}.'
    if release := shown['release']:
        if release['held']:
            return f'{name} is {status}, {what}: its release is held at stage {release["stage"]}: {release["held"]}.'
        released = [server for server in shown['servers'] if server['released']]
        where = f'released to {len(released)} of {len(shown["servers"])} servers: stage {release["stage"]}'
        rests = '' if any(server['counts'] for server in released) else '; it waits, since none of these is in service'
        return f'{name} is {status}, {what}: {where}{rests}.'
    if status == 'ERROR':
        failed = sum(server['status'] == 'ERROR' for server in servers)
        return f'{name} is in ERROR while {what}: {failed} of {len(servers)} servers failed.'
    if not servers:
        return f'{name} is {status}, {what}: no server of its pool counts now.'
    if shown['needed'] is None:
        return f'{name} is {status}, {what}.'
    more = shown['needed'] - shown['current']
    if more <= 0:
        return f'{name} is {status}, {what}: enough servers are done, and the result is being reported.'
    return f'{name} is {status}, {what}: waiting for {more} more of {shown["total"]} servers.'


def frozen(freeze: Mapping[str, Any]) -> str:
    """How a pool is frozen, after a sentence that says so."""
    until = freeze['until'] and f' until {read_moment(freeze["until"]):%Y-%m-%d %H:%M:%S} UTC'
    return f'{until or ""}: {freeze["reason"].rstrip(".")}'


def _advice_for_frozen(shown: Mapping[str, Any]) -> list[str]:
    name = shown['zone_name']
    if (release := shown['release']) and release['held']:
        return [f"'designate-pool zone release continue {name}' tries it again from the first stage; 'designate-pool "
                f"zone release abort {name}' gives all servers the contents before it."]
    if release and not any(server['counts'] and server['released'] for server in shown['servers']):
        return [f"'designate-pool zone release continue {name}' goes on with the next stage at once."]
    if release:
        return ['Wait: the next stage follows when these servers have served it as they should for long enough.']
    if not shown['freeze']:
        return []
    return ["Wait until the pool is unfrozen" + ('.' if shown['action'] == 'DELETE' else
            f"; 'designate-pool zone unfreeze {name}' serves what waits of this zone before, by an administrator.")]


def _not_transferred(name: str, status: str, secondary: Mapping[str, Any]) -> str:
    """Of a secondary zone that is not served."""
    what = 'has not been transferred from its masters yet' if secondary['transferred_at'] is None else (
        f'has expired: no master could be reached since {secondary["checked_at"]}')
    error = secondary['last_error']
    return f'{name} is {status} and not served: it {what}{f" ({error})" if error else ""}.'


def lacking(shown: Mapping[str, Any]) -> str | None:
    """What the consensus lacks, in one sentence; None when it lacks nothing."""
    if shown['needed'] is None or shown['current'] >= shown['needed']:
        return None
    goal = 'without the zone' if shown['action'] == 'DELETE' else f'at serial {shown["content_serial"]}'
    return (f'The pool needs {shown["needed"]} of {shown["total"]} servers {goal} '
            f'(threshold {shown["threshold_percentage"]} %), and has {shown["current"]}.')


def state_of(each: Mapping[str, Any], shown: Mapping[str, Any], now: datetime,
             missing: Mapping[str, datetime | None]) -> str:
    """Where a server stands, in one sentence or two."""
    resting = _resting(each, now)
    silent = _silence(each, now)
    if each['current']:
        done = 'It has confirmed that the zone is gone' if shown['action'] == 'DELETE' else f'It {_serves(each)}'
        if what := shown['unrepaired'].get(each['name']):
            done = f'Serial {each["serial"]} is recorded, but a comparison found: {what}'
        signs = 'its serials are its own: it signs' if each['signs'] else None
        is_older = (shown['action'] != 'DELETE' and not (shown['freeze'] or shown['release'])
                    and each['serial'] is not None and newer(shown['serial'], each['serial']))
        lacks = f'it lacks the renewed signatures of serial {shown["serial"]}' if is_older else None
        return '; '.join(filter(None, (done, lacks, signs, silent, resting))) + '.'
    resting = resting or next((f'no {_NEEDED[name][0]} runs' for name in missing), None)
    if each['created_at'] is None:
        return f'Nothing has been started on it; {resting}.' if resting else 'Nothing has been started on it yet.'
    if each['diverged']:
        return _diverged(each, resting, now)
    task = _TASKS[each['action']].format(each['expected_serial'])
    seen = 'no serial was seen there yet' if each['serial'] is None else f'it {_serves(each)}'
    seen = f'{seen}; {silent}' if silent else seen
    tries = f'{each["attempts"]} {"try" if each["attempts"] == 1 else "tries"}'
    so_far = f', {tries} so far' if each['attempts'] or _asked_for(each, now) is None else ''
    if each['status'] == 'ERROR':
        error = (each['last_error'] or 'no reason was given').rstrip('.')
        sentence = f'It failed at {task} after {tries} ({error}); {seen}'
    elif each['last_error']:
        sentence = f'It is {task}{so_far} ({each["last_error"].rstrip(".")}); {seen}'
    else:
        sentence = f'It is {task}{so_far}; {seen}'
    return f'{sentence}; {resting or _next_try(each, now, shown["probe_interval"])}.'


def _serves(each: Mapping[str, Any]) -> str:
    """What it was seen to serve, and when."""
    if each['seen_at'] is not None:
        return f'was last seen to serve serial {each["serial"]} at {read_moment(each["seen_at"]):%Y-%m-%d %H:%M:%S} UTC'
    return f'{"served" if each["silent_since"] else "serves"} serial {each["serial"]}'


def _diverged(each: Mapping[str, Any], resting: str | None, now: datetime) -> str:
    """Of a server that serves other contents under its serial, or a serial ahead of ours."""
    error = (each['last_error'] or '').rstrip('.')
    if each['reason'] == Reason.SIGNS.value:
        return f'It {error}; {resting or "it is compared again from time to time"}.'
    sentence = f'It {_serves(each)} with other contents{f" ({error})" if error else ""}'
    at = each['next_attempt_at']
    seconds = None if at is None else (read_moment(at) - now).total_seconds()
    when = 'under way' if seconds is None else 'due now' if seconds <= 0 else f'due in {round(seconds, 1):g} s'
    return f'{sentence}; {resting or f"a forced transfer is {when}"}.'


def what_to_do(each: Mapping[str, Any]) -> str | None:
    """What an operator can do about a server; None if there is nothing to do, or the pool is doing it."""
    if each['current']:
        return ADVICE[Reason.SIGNS] if each['signs'] else None
    name = each['name']
    if each['state'] == 'maintenance':
        return f"when it is ready again: 'designate-pool server resume {name}'"
    if not each['counts'] and each['state'] != 'joining':
        return None
    if each['plan_id']:
        return ADVICE[Reason.PARKED].format(plan=each['plan_id'].replace('-', '')[:8])
    if each['status'] != 'ERROR':
        return None  # the round of tries may still end well
    return ADVICE.get(each['reason'], _OTHERWISE).format(server=name)


def advice(shown: Mapping[str, Any], servers: Sequence[Mapping[str, Any]], now: datetime) -> list[str]:
    """What to do, a sentence each; empty when there is nothing to be done."""
    if not counting(shown):
        return ["Make a server count: 'designate-pool server list' shows the state of each."]
    names_of: dict[str, list[str]] = {}
    for server in servers:
        if server['what_to_do']:
            names_of.setdefault(server['what_to_do'], []).append(server['name'])
    sentences = [f'{", ".join(names)}: {what}.' for what, names in names_of.items()]
    if (secondary := shown.get('secondary')) and secondary['last_error'] and shown['action'] != 'DELETE':
        sentences.append("Look whether a master runs and lets MiniDNS transfer the zone; 'designate-pool zone refresh "
                         f"{shown['zone_name']}' asks the masters now.")
    if sentences or all(server['current'] for server in counting(shown)):
        return sentences
    asked = {server['name']: longest for server in servers if (longest := _asked_for(server, now)) is not None}
    if asked:
        verb = 'is' if len(asked) == 1 else 'are'
        return [f'Wait: {", ".join(asked)} {verb} being asked and may yet answer; look again in at most '
                f'{max(asked.values())} s, then it is known what to do.']
    if shown['freeze'] or shown['release']:
        return []
    if shown['status'] == 'ACTIVE':
        return ['Nothing: the pool brings the rest up to date automatically.']
    return ['Wait: retries are under way.']


def age(since: datetime, now: datetime) -> str:
    """How long ago *since* was, in its largest unit."""
    passed = max(0, int((now - since).total_seconds()))
    seconds, unit = next(((size, unit) for size, unit in _UNITS if passed >= size), _UNITS[-1])
    count = passed // seconds
    return f'{count} {unit}' if count == 1 else f'{count} {unit}s'


def _resting(each: Mapping[str, Any], now: datetime) -> str | None:
    """Why it does not count, where it does not."""
    if each['counts']:
        return None
    since = f' for {age(read_moment(each["state_since"]), now)}' if each['state_since'] else ''
    return {
        'maintenance': f'it has been in maintenance{since}, is sent nothing and does not count',
        'joining': f'it has been joining the pool{since} and does not count before it has every zone',
        'draining': 'it is leaving the pool and does not count',
    }.get(each['state'], f'it is {each["state"]} and does not count')


def _silence(each: Mapping[str, Any], now: datetime) -> str | None:
    """Since when it has answered nobody."""
    if each['silent_since'] is None:
        return None
    since = read_moment(each['silent_since'])
    return f'it has answered nobody since {since:%Y-%m-%d %H:%M:%S} UTC ({age(since, now)})'


def _next_try(each: Mapping[str, Any], now: datetime, probe_interval: float | None) -> str:
    if each['silent_since'] and each['status'] == 'ERROR':  # its circuit is open
        when = ('it is probed every few seconds' if probe_interval is None else
                f'the next probe is due by {now + timedelta(seconds=probe_interval + 1):%H:%M:%S} UTC')
        return f'{when}, and all that is due on it is tried when it answers'
    if (longest := _asked_for(each, now)) is not None:
        return ('it is being asked again now' if each['status'] == 'ERROR' else
                f'it is being asked now, and has failed if it does not answer within {longest} s')
    at = each['next_attempt_at']
    if at is None:
        return 'it is being worked on'
    seconds = (read_moment(at) - now).total_seconds()
    return 'the next try is due now' if seconds <= 0 else f'the next try is in {round(seconds, 1):g} s'


def _asked_for(each: Mapping[str, Any], now: datetime) -> int | None:
    """Seconds, whole ones, in which the tries of a server that is being asked are over; None for any other."""
    if each['deadline_at'] is None or each['current'] or not each['counts']:
        return None
    seconds = (read_moment(each['deadline_at']) - now).total_seconds()
    return math.ceil(seconds) if seconds > 0 else None
