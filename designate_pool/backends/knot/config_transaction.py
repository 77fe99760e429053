"""Changes of a Knot server's configuration: read what is there, change what differs, in one transaction.

A knotd has one configuration transaction at a time, and it belongs to nobody: whoever speaks next acts in it.  It
outlives the connection that began it, and as long as it is open nobody else can begin one.  Hence the rules here:

- nothing is sent for a transaction before its begin is confirmed, and a begin only where knotd has just answered;
- a transaction that does not end in a commit is aborted;
- each of ours changes the comment of a section that is ours.  One that a killed pool manager has left open is known by
  that, and aborted: knotd listens to nobody else as long as the connection that it came from is open.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

import dns.name

from designate_pool.backends.knot.control_protocol import Block, KnotControl, Unit, error_in
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused
from designate_pool.model import Reason

#: What the ids of our own sections begin with.
OURS = 'designate-pool-'
#: How often a call begins anew without the zones that were refused; knotd names one at a time on commit.
MOST_ROUNDS = 20

ABSENT = 'invalid identifier'
_BAD_REFERENCE = 'not exists'

#: The items of a section, each with its values.
Settings = Mapping[str, Sequence[str]]
#: Blocks, since one holds units of one command; a block that is refused has changed nothing.
Change = Sequence[Block]
#: Why zones were left out, by name.
Refused = dict[str, BackendError]


class TransactionIsOpen(BackendError):
    """Another configuration transaction is open on the server, which changes {changes}; "knotc conf-abort" ends it."""


def absolute(text: str) -> str:
    """A name as we write it, of any of its forms: absolute, lower case.

    :raises dns.exception.DNSException, ValueError: when it is none
    """
    return dns.name.from_text(text).canonicalize().to_text()


def read(control: KnotControl, section: str, ids: Sequence[str], deadline: Deadline) -> list[Settings | None]:
    """The settings of sections in force, in the order of their *ids*; None for one that is not there."""
    answers = control.ask_each([[{'command': 'conf-read', 'section': section, 'id': id}] for id in ids], deadline)
    return [_settings(answer) for answer in answers]


def difference(section: str, id: str, held: Settings | None, wanted: Settings) -> Change:
    """What gives a section the items *wanted*; nothing when it has them.  Its other items are left alone.

    :param held: what it has; None when it is not there
    :param wanted: an item without values is one that the section is not to have
    """
    unset: list[Unit] = []
    given: list[Unit] = [] if held is not None else [_command('conf-set', section, id)]
    for item, values in wanted.items():
        had = (held or {}).get(item, ())
        if list(had) != list(values):
            unset += [_command('conf-unset', section, id, item)] if had else []
            given += [_command('conf-set', section, id, item, value) for value in values]
    return [block for block in (unset, given) if block]


def removal(section: str, id: str) -> Change:
    """What removes a section."""
    return [[_command('conf-unset', section, id)]]


def mark(section: str, id: str) -> Change:
    """What makes a transaction known as ours, by a section that is ours."""
    now = datetime.datetime.now(datetime.UTC).isoformat()
    return [[_command('conf-set', section, id, 'comment', f'last changed by designate-pool at {now}')]]


def commit(control: KnotControl, shared: Change, zones: Mapping[str, Change], deadline: Deadline) -> Refused:
    """Change the configuration in one transaction, leaving out the zones whose change the server does not accept.

    :param shared: what all of them need; it goes first
    :param zones: by their names
    :returns: by name, why a zone was left out
    :raises TransactionIsOpen: when somebody else has one open
    :raises BackendError: when nothing was changed
    """
    refused: Refused = {}
    for _ in range(MOST_ROUNDS):
        due = {name: change for name, change in zones.items() if name not in refused}
        if refused and not due:
            return refused
        _begin(control, deadline)
        try:
            found = _change(control, shared, due, deadline) or _commit(control, due, deadline)
        except BaseException:  # of a timeout too: what was sent last may still be carried out
            control.say({'command': 'conf-abort'})
            raise
        if not found:
            return refused
        list(control.ask({'command': 'conf-abort'}, deadline))
        refused |= found
    raise BackendError(why=f'the server refuses one zone after the other, the last with: {[*refused.values()][-1]}')


def _begin(control: KnotControl, deadline: Deadline) -> None:
    if error_in(list(control.ask({'command': 'conf-begin'}, deadline))) is None:
        return
    changed = [unit for unit in control.ask({'command': 'conf-diff'}, deadline) if 'error' not in unit]
    if any(unit.get('item') == 'comment' and unit.get('id', '').startswith(OURS) for unit in changed):
        list(control.ask({'command': 'conf-abort'}, deadline))
        if error_in(list(control.ask({'command': 'conf-begin'}, deadline))) is None:
            return
    raise TransactionIsOpen(changes=_in_words(changed))


def _change(control: KnotControl, shared: Change, zones: Mapping[str, Change], deadline: Deadline) -> Refused:
    """Send the changes; the zones with one that was not accepted."""
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
    """Commit; the first zone whose settings are not in order as a whole.

    :raises BackendError: also when that takes too long, as it does while knotd waits for refreshes; it is busy then,
        and does it all the same
    """
    try:
        trouble = error_in(list(control.ask({'command': 'conf-commit'}, deadline)))
    except TimeoutError as error:
        raise BackendError(why=f'conf-commit has not ended within {deadline.seconds:g} s, for which knotd waits for the'
                               ' refreshes that are under way', reason=Reason.TIMEOUT) from error
    if trouble is None:
        return {}
    name = absolute(trouble['id']) if trouble.get('section') == 'zone' and 'id' in trouble else ''
    if name not in zones:
        raise _error(trouble)
    return {name: _error(trouble)}


def _command(command: str, section: str, id: str, item: str | None = None, data: str | None = None) -> Unit:
    given = {'command': command, 'section': section, 'item': item, 'id': id, 'data': data}
    return {name: value for name, value in given.items() if value is not None}


def _settings(answer: Sequence[Unit]) -> Settings | None:
    trouble = error_in(answer)
    if trouble is not None:
        if trouble['error'] == ABSENT:
            return None
        raise _error(trouble)
    found: dict[str, list[str]] = {}
    for unit in answer:
        found.setdefault(unit.get('item', ''), []).append(unit.get('data', ''))
    return found


def _error(trouble: Unit) -> BackendError:
    """*trouble* in words, without its data but for names that we gave: an operator's data may be secret."""
    item, error = trouble.get('item', ''), trouble['error']
    if error == _BAD_REFERENCE and item in ('template', 'key'):
        return BackendRefused(why=f"the server's configuration has no {item} {trouble.get('data', '')}",
                              reason=Reason.BAD_KEY if item == 'key' else None)
    where = '.'.join(word for word in (trouble.get('section'), item) if word)
    return BackendError(why=f"{trouble.get('command', 'conf-commit')}: {where + ': ' if where else ''}{error}")


def _in_words(changed: Sequence[Unit]) -> str:
    """The sections in an answer to ``conf-diff``."""
    sections = dict.fromkeys(' '.join(filter(None, (unit.get('section'), _id(unit)))) for unit in changed)
    if not sections:
        return 'nothing yet'
    return ', '.join([*sections][:3]) + (f' and {len(sections) - 3} more' if len(sections) > 3 else '')


def _id(unit: Unit) -> str | None:
    return unit.get('data') if unit.get('item') in ('id', 'domain', 'target') else unit.get('id')
