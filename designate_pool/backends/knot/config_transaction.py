"""Changes a Knot server's configuration: reads sections, and changes those that differ in one transaction.

A knotd has one configuration transaction at a time, which belongs to no connection: every command on any connection
acts in it.  It outlives the connection that began it, and as long as it is open nobody else can begin one.  Hence:

- nothing is sent for a transaction before its begin is confirmed;
- a transaction that does not end in a commit is aborted;
- each transaction changes the comment of a section of ours.  By that, one that a killed pool manager has left open is
  recognized and aborted;
- one that stays empty for a while is aborted too: it is from a pool manager whose connection ended after the begin.
  knotd closes a connection on which nothing was sent for five seconds, and an abort that comes later is lost.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from designate_pool.backends.knot.control_protocol import Block, KnotControl, Unit, error_in
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused
from designate_pool.model import Reason, some
from designate_pool.protocol.names_and_rdata import name_of_server

#: The prefix of the ids of our own sections.
OURS = 'designate-pool-'
#: How often a commit is tried again without the zones that were refused; knotd names only one of them at a time.
MOST_ATTEMPTS = 20

ABSENT = 'invalid identifier'
_BAD_REFERENCE = 'not exists'

#: The items of a section, each with its values.
Settings = Mapping[str, Sequence[str]]
#: Several blocks, since one has units of one command only; a block that is refused has changed nothing.
Change = Sequence[Block]
#: Why zones were left out, by name.
Refused = dict[str, BackendError]


class TransactionIsOpen(BackendError):
    """Another configuration transaction is open on the server, which changes {changes}; "knotc conf-abort" ends it."""

    reason = Reason.BUSY
    is_empty = False


def read(control: KnotControl, section: str, ids: Sequence[str], deadline: Deadline) -> list[Settings | None]:
    """The current settings of sections, in the order of their *ids*; None for one that does not exist."""
    answers = control.ask_each([[{'command': 'conf-read', 'section': section, 'id': id}] for id in ids], deadline)
    return [_settings(answer) for answer in answers]


def difference(section: str, id: str, held: Settings | None, wanted: Settings) -> Change:
    """The change that gives a section the items *wanted*, where those without values are removed and others stay.

    It is empty when the section, whose present items are *held* (None for no section), has them.
    """
    unset: list[Unit] = []
    units: list[Unit] = [] if held is not None else [_command('conf-set', section, id)]
    for item, values in wanted.items():
        had = (held or {}).get(item, ())
        if list(had) != list(values):
            unset += [_command('conf-unset', section, id, item)] if had else []
            units += [_command('conf-set', section, id, item, value) for value in values]
    return [block for block in (unset, units) if block]


def removal(section: str, id: str) -> Change:
    """The change that removes a section."""
    return [[_command('conf-unset', section, id)]]


def mark(section: str, id: str) -> Change:
    """The change of a section of ours by which a transaction is recognized as ours."""
    now = datetime.datetime.now(datetime.UTC).isoformat()
    return [[_command('conf-set', section, id, 'comment', f'last changed by designate-pool at {now}')]]


def abort_empty(control: KnotControl, deadline: Deadline) -> None:
    """Abort the open transaction if it changes nothing."""
    if not any('error' not in unit for unit in list(control.ask({'command': 'conf-diff'}, deadline))):
        list(control.ask({'command': 'conf-abort'}, deadline))


def commit(control: KnotControl, shared: Change, zones: Mapping[str, Change], deadline: Deadline) -> Refused:
    """Change the configuration in one transaction, without the zones whose change the server refuses.

    :param shared: the changes that all zones need; they are sent first
    :param zones: the changes of zones, by name
    :returns: the errors of the zones that were refused, by name
    :raises BackendError: when nothing was changed, TransactionIsOpen when somebody else has a transaction open
    """
    refused: Refused = {}
    for _ in range(MOST_ATTEMPTS):
        due = {name: change for name, change in zones.items() if name not in refused}
        if refused and not due:
            return refused
        _open(control, deadline)
        try:
            newly_refused = _change(control, shared, due, deadline) or _commit(control, due, deadline)
        except BaseException:  # also after a timeout: the last command may still be carried out
            control.send_last({'command': 'conf-abort'})
            raise
        if not newly_refused:
            return refused
        list(control.ask({'command': 'conf-abort'}, deadline))
        refused |= newly_refused
    raise BackendError(why=f'the server refuses zone after zone, the last one with: {[*refused.values()][-1]}')


def _open(control: KnotControl, deadline: Deadline) -> None:
    if error_in(list(control.ask({'command': 'conf-begin'}, deadline))) is None:
        return
    changed = [unit for unit in control.ask({'command': 'conf-diff'}, deadline) if 'error' not in unit]
    if any(unit.get('item') == 'comment' and unit.get('id', '').startswith(OURS) for unit in changed):
        list(control.ask({'command': 'conf-abort'}, deadline))
        if error_in(list(control.ask({'command': 'conf-begin'}, deadline))) is None:
            return
    raise TransactionIsOpen(changes=_describe(changed), is_empty=not changed)


def _change(control: KnotControl, shared: Change, zones: Mapping[str, Change], deadline: Deadline) -> Refused:
    blocks = [('', block) for block in shared] + [(name, block) for name, change in zones.items() for block in change]
    refused: Refused = {}
    for (name, _), answer in zip(blocks, control.ask_each([block for _, block in blocks], deadline), strict=True):
        trouble = error_in(answer)
        if trouble is not None and not name:
            raise _error(trouble)
        if trouble is not None:
            refused.setdefault(name, _error(trouble))
    return refused


def _commit(control: KnotControl, zones: Mapping[str, Change], deadline: Deadline) -> Refused:
    """Commit; the first zone whose settings are refused."""
    try:
        trouble = error_in(list(control.ask({'command': 'conf-commit'}, deadline)))
    except TimeoutError as error:
        raise BackendError(why=f'conf-commit has not ended within {deadline.seconds:g} s; knotd waits for the zone'
                               ' refreshes that are in progress', reason=Reason.TIMEOUT) from error
    if trouble is None:
        return {}
    name = name_of_server(trouble['id']) if trouble.get('section') == 'zone' and 'id' in trouble else ''
    if name not in zones:
        raise _error(trouble)
    return {name: _error(trouble)}


def _command(command: str, section: str, id: str, item: str | None = None, data: str | None = None) -> Unit:
    unit = {'command': command, 'section': section, 'item': item, 'id': id, 'data': data}
    return {name: value for name, value in unit.items() if value is not None}


def _settings(answer: Sequence[Unit]) -> Settings | None:
    trouble = error_in(answer)
    if trouble is not None:
        if trouble['error'] == ABSENT:
            return None
        raise _error(trouble)
    items: dict[str, list[str]] = {}
    for unit in answer:
        items.setdefault(unit.get('item', ''), []).append(unit.get('data', ''))
    return items


def _error(trouble: Unit) -> BackendError:
    """The error for *trouble*; its data is left out, since it may be secret, unless it is a name that we have sent."""
    item, error = trouble.get('item', ''), trouble['error']
    if error == _BAD_REFERENCE and item in ('template', 'key'):
        return BackendRefused(why=f"the server's configuration has no {item} {trouble.get('data', '')}",
                              reason=Reason.BAD_KEY if item == 'key' else Reason.NOT_CONFIGURED)
    where = '.'.join(word for word in (trouble.get('section'), item) if word)
    return BackendError(why=f"{trouble.get('command', 'conf-commit')}: {where + ': ' if where else ''}{error}")


def _describe(changed: Sequence[Unit]) -> str:
    sections = dict.fromkeys(' '.join(filter(None, (unit.get('section'), _id(unit)))) for unit in changed)
    if not sections:
        return 'nothing yet'
    return some([*sections], 3)


def _id(unit: Unit) -> str | None:
    return unit.get('data') if unit.get('item') in ('id', 'domain', 'target') else unit.get('id')
