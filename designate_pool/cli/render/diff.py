"""Changes and plans as text.  Pure: documents and values in, lines out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from designate_pool.planner.plan.plan import change_of
from designate_pool.planner.zone.changes import Change
from designate_pool.protocol.rrset import RRset

Json = Mapping[str, Any]
#: What can be done with a plan, by its state.
_NEXT = {
    'STORED': "'designate-pool apply {short}' applies exactly this, 'designate-pool plan drop {short}' drops it.",
    'FAILED': "'designate-pool apply {short}' applies the rest, if nothing else has changed.",
    'PARKED': "'designate-pool apply {short}' approves exactly this; after 'designate-pool plan drop {short}' a new "
              'plan is made.',
    'APPROVED': 'It is applied at the next try.',
}


def of_changes(changes: Iterable[Change]) -> Iterator[str]:
    """Lines for each change: what is done, then the RRsets that it removes and those that it adds."""
    for change in changes:
        yield f'  {change.kind} {change.name} {" ".join(change.types)}'
        yield from (f'    - {_rrset(rrset)}' for rrset in change.existing)
        yield from (f'    + {_rrset(rrset)}' for rrset in change.new)


def of_plan(shown: Json) -> Iterator[str]:
    """Lines for a plan.

    :param shown: what ``plan show`` shows, with the document
    """
    yield f'Plan {shown["id"]} is {shown["state"]}: {shown["zone"]} on {shown["target"]}.'
    for name, title in (('created_at', 'made'), ('expires_at', 'can be applied until'), ('applied_at', 'applied')):
        if shown[name] is not None:
            yield f'  {title} {shown[name]}'
    if shown['asked_by']:
        yield f'  asked by {shown["asked_by"]}'
    for line in (shown['why'] or '').splitlines():
        yield f'  {line}'
    for part in parts(shown['document']):
        yield ''
        yield from _of_part(part)
    # The rest of a pool manager's plan is planned anew.
    if shown['state'] in _NEXT and (shown['state'] != 'FAILED' or 'parts' in shown['document']):
        yield ''
        yield _NEXT[shown['state']].format(short=shown['id'].replace('-', '')[:8])


def parts(document: Json) -> Sequence[Json]:
    """The plans of single zones in a stored plan: several in an operator's, one in a pool manager's."""
    if 'parts' in document:
        parts: Sequence[Json] = document['parts']
        return parts
    return [document] if 'changes' in document else []


def _of_part(part: Json) -> Iterator[str]:
    counts = part['counts']
    yield (f'{part["zone"]} on {part["target"]}: {counts["creates"]} to create, {counts["updates"]} to update, '
           f'{counts["deletes"]} to delete; {part["existing_records"]} RRsets were there')
    if not part['exists']:
        yield '  Create zone'
    yield from of_changes(change_of(change) for change in part['changes'])
    for blocked in part['blocked']:
        yield f'  Blocked ({blocked["by"]}): {change_of(blocked["change"])}: {blocked["why"]}'
    if part['meta']:
        yield f'  Meta: {json.dumps(part["meta"], sort_keys=True)}'


def _rrset(rrset: RRset) -> str:
    extra = '' if rrset.extra.served == (None, None) else f' {json.dumps(rrset.extra.served, default=str)}'
    return f'{rrset.name} {rrset.ttl} {rrset.type} {"; ".join(rrset.rdatas)}{extra}'
