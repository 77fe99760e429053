"""Judges a history: which of the promises were broken.  It knows the events alone, nothing of the programs.

The promises are those of ``doc/source/how-it-works.rst``, "Invariants", as users can see them:

``lost``
    What an acknowledged operation left is in the zone at each serial from that operation's on, until a later one
    replaces it.  Of operations at the same time either may be the later; one of unknown outcome may have happened or
    not, until its effect is seen.  Of several RRsets that one operation changes all are changed.  A zone that nobody
    deleted exists.
``refused``
    What an operation that was refused would have written is nowhere.
``serials``
    A serial never goes backwards: for whoever asks the API about a zone, and for whoever asks one server about a name,
    through all lives of that name.  No server is ahead of what the API tells afterwards.  A name keeps its serials when
    its zone is deleted, so the next life begins above them.  A canary that has deleted a zone, and then has to wait as
    the others do, may have what these have.
``active``
    When the API shows a zone as ACTIVE at a serial, enough servers have served it or a newer one.  The window: a server
    that answers a query sent after that with less, without a fault of its own since the serial was new, did not.
``deleted``
    When the API shows a deleted zone no more, enough servers have dropped it.  The window is the same.  When a new zone
    has the name, a server may serve the former one until it has fetched the new one.
``former``
    What belongs to a former life of a name is not in the contents of the next one, and a server that has served the
    next one does not return to the former.
``tenants``
    Nobody is shown, may change, is served or lies above or below what is another tenant's.
``twice``
    A name is one zone at a time.
``equal``
    The contents at one serial are the same wherever and whenever they are seen.
``healed``
    When all faults have ended, within the bound every zone is ACTIVE, and every server serves the serial that the API
    shows and what it should hold; of a deleted zone nothing is there.
``foreign``
    What somebody else wrote into a zone on a server that is fed by records stays there, also when the zone is deleted;
    SOA and NS stay with it then.  The window: a deletion that was asked for before that was written.
``frozen``
    What is acknowledged while the pool is frozen is on no server before the end of the freeze.
``staged``
    What is acknowledged while changes are released in stages is on no server but the canary before that has had it for
    its time.  The window: a restored zone goes to all servers at once.
``valid``
    What a server has of a signed zone is valid as a whole, whoever signed which part of it.  A version of a signed zone
    that only renews signatures need not be served for the zone to be ACTIVE.
``leftover``
    Afterwards nothing is left over of what is done.

A fault of a server excuses it, as far as it may: see :meth:`~tests.torture.history.Past.is_disturbed`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from tests.torture.history import GONE, Change, Event, Key, Life, Past, Value, at_least, lies_below, newer

#: Of RRsets that the pool itself makes.
MANAGED = ('SOA', 'NS')


@dataclasses.dataclass(frozen=True, slots=True)
class Breach:
    """A promise that was broken.

    :ivar events: those that show it
    """

    rule: str
    text: str
    zone: str | None = None
    events: tuple[Event, ...] = dataclasses.field(default=(), compare=False)

    def __str__(self) -> str:
        return f'{self.rule}: {self.zone or "-"}: {self.text}'


def check(events: Sequence[Event]) -> list[Breach]:
    """All breaches in a whole history."""
    past = Past(events)
    found = [breach for rule in RULES for breach in rule(past)]
    return list(dict.fromkeys(found))


def unsettled(events: Sequence[Event]) -> list[Breach]:
    """What is not yet as it has to be after healing."""
    return list(_healed(Past(events)))


def shared(events: Sequence[Event]) -> set[tuple[str, str]]:
    """The servers and zones of which somebody else has records there, or may have."""
    return set(Past(events).foreign)


def living(events: Sequence[Event]) -> tuple[list[str], list[str]]:
    """The names that have a zone after healing, and those that have none any more."""
    past = Past(events)
    found: tuple[list[str], list[str]] = [], []
    for name, lives in past.by_name.items():
        found[_living(past, lives) is None].append(name)
    return found


def _lost(past: Past) -> Iterator[Breach]:
    restored = {life.former.number for life in past.lives.values() if life.former is not None}
    for life in past.lives.values():
        if life.create.outcome == 'fail':
            continue
        for change in life.changes:
            if change.answered and change.invoked > life.deleted_at and life.number not in restored:
                yield Breach('lost', f'{change.name()} was acknowledged after the zone was deleted', life.zone,
                             tuple(change.events))
        gone = [each for each in life.shown if each['status'] == GONE and each['asked'] > life.create.ended]
        if gone and gone[0]['t'] < life.may_be_deleted_from:
            yield Breach('lost', f'the zone of {life.create.name()} is not there, and nobody deleted it', life.zone,
                         (life.create.events[-1], gone[0]))
        for was, then in itertools.product(gone[:1], life.shown[-1:]):
            if then['status'] != GONE and then['asked'] > was['t']:
                yield Breach('lost', f'the zone of {life.create.name()} was gone and is back', life.zone, (was, then))
    for (server, _), events in past.observed.items():
        for event in events:
            if event['e'] == 'contents' and event.get('life') in past.lives and _is_trusted(past, event, events) and (
                    (event['zone'], event['serial']) not in past.released):
                wrong = list(_wrong_contents(past, past.lives[event['life']], event))
                if wrong and (then := _serial_then(past, event, events)) is not None:
                    wrong = list(_wrong_contents(past, past.lives[event['life']], {**event, 'serial': then}))
                yield from wrong


def _serial_then(past: Past, event: Event, all_of_it: Sequence[Event]) -> int | None:
    """The serial that a server fed by records has next, if it is another: PowerDNS reads the SOA of a transfer before
    the records, which may be those of the next serial already."""
    serial = next((each['serial'] for each in all_of_it if each['asked'] > event['t']), None)
    return serial if event['server'] in past.fed and serial is not None and newer(serial, event['serial']) else None


def _is_trusted(past: Past, event: Event, all_of_it: Sequence[Event]) -> bool:
    """Whether the contents must be right: the server was never told to lie, or has had the time to be mended, and is
    neither deleting the zone nor making it.

    PowerDNS deletes the records under a transfer that has begun, and hands over an SOA alone; one that is fed by
    records has SOA and NS first and last, first with the serial before.
    """
    life, is_fed = past.lives.get(event.get('life') or 0), event['server'] in past.fed
    if life and {each[1] for each in event['rrsets']} <= set(MANAGED if is_fed else ('SOA',)) and (
            event['t'] > life.may_be_deleted_from or is_fed and (
                past.has_lost_zones(event['server'], 0, event['t'])
                or all(newer(told, event['serial']) for _, _, told, _ in life.readings))):
        return False
    if not past.is_spoilt(event['server'], event['t']):
        return True
    if life and event['t'] > life.may_be_deleted_from:
        return False  # what is going is not mended first
    last = next(each for each in reversed(all_of_it) if each['e'] == 'contents')
    return past.healed is not None and event is last and event['asked'] >= past.healed


def _wrong_contents(past: Past, life: Life, event: Event) -> Iterator[Breach]:
    """Breaches in what a server had of *life* at a serial."""
    held: dict[Key, Value] = {(name, rtype): (ttl, tuple(sorted(rdatas))) for name, rtype, ttl, rdatas
                              in event['rrsets'] if not (rtype in MANAGED and name == life.zone)}
    wrong: set[Key] = set()
    mine = life.written_by
    numbers = {change.number for change in mine}
    for key, value in held.items():
        for rdata in value[1] if value else ():
            origins = past.origins.get((key[1], rdata), ())
            if any(each.number in numbers and each.outcome != 'fail' for each in origins):
                continue  # who failed may try the same again
            origin = next(iter(origins), None)
            if origin is None:
                problem = 'lost', f'{_text(key, value)} at serial {event["serial"]}, which nobody wrote'
            elif origin.tenant != life.tenant:
                problem = 'tenants', f'{_text(key, value)}, which another tenant wrote by {origin.name()}'
            elif origin.outcome == 'fail':
                problem = 'refused', f'{_text(key, value)}, although {origin.name()} was refused'
            else:
                problem = 'former', (f'{_text(key, value)} of {origin.name()} in the contents of a zone that '
                                     f'{life.create.name()} made')
            wrong.add(key)
            yield Breach(problem[0], f'{event["server"]} has {problem[1]}', life.zone, (event,))
    writers: dict[Key, list[Change]] = {}
    for change in mine:
        for key in change.changes if change.outcome != 'fail' else ():
            writers.setdefault(key, []).append(change)
    for key in (held.keys() | writers.keys()) - wrong:
        possible = _possible(life, writers.get(key, ()), event)
        values = {change.changes.get(key) if change else None for change in possible}
        if held.get(key) not in values:
            by = ' or '.join(each.name() if each else 'nothing' for each in possible)
            yield Breach('lost', f'{event["server"]} has {_text(key, held.get(key))} at serial {event["serial"]}; what '
                         f'was left is that of {by}', life.zone,
                         (*(each.events[-1] for each in possible if each), event))


def _possible(life: Life, writers: Iterable[Change], event: Event) -> list[Change | None]:
    """The operations of which one was the last on an RRset by the serial of *event*; None for that there was none."""
    inside, certain = [], []
    for change in writers:
        happened = _is_inside(life, change, event)
        if happened is not False:
            inside.append(change)
        if happened:
            certain.append(change)
    found: list[Change | None] = [each for each in inside
                                  if not any(_is_after(life, other, each) for other in certain)]
    return found if certain else [None, *found]


def _is_inside(life: Life, change: Change, event: Event) -> bool | None:
    """Whether *change* is in the contents at the serial of *event*; None when that cannot be told."""
    if change.invoked > event['t']:
        return False
    if change is life.create:
        return True
    if change.answered and change.serial is not None:
        return at_least(event['serial'], change.serial)
    if change.seen_serial is not None and at_least(event['serial'], change.seen_serial):
        return True
    before = life.serial_before(change.invoked)
    if before is not None and at_least(before, event['serial']):
        return False
    after = life.serial_after(change.ended) if change.outcome == 'ok' else None
    return True if after is not None and at_least(event['serial'], after) else None


def _is_after(life: Life, one: Change, other: Change) -> bool:
    """Whether *one* certainly took effect after *other*, of which it is not the same."""
    if one is other or one is life.create:
        return False
    if other is life.create:
        return True
    if one.answered and other.answered and one.serial is not None and other.serial is not None:
        return newer(one.serial, other.serial)
    return one.invoked > other.ended


def _text(key: Key, value: Value) -> str:
    return f'no {key[0]} {key[1]}' if value is None else f'{key[0]} {value[0]} {key[1]} {", ".join(value[1])}'


def _serials(past: Past) -> Iterator[Breach]:
    for life in past.lives.values():
        given: dict[int, Change] = {}
        for change in (life.create, *life.changes):
            if change.answered and change.serial is not None:
                other = given.setdefault(change.serial, change)
                if other is not change:
                    yield Breach('serials', f'{other.name()} and {change.name()} have the same serial {change.serial}',
                                 life.zone, (other.events[-1], change.events[-1]))
        for asked, _, serial, event in life.readings:
            before = life.serial_before(asked)
            if before is not None and newer(before, serial):
                yield Breach('serials', f'the API told {serial} after {before}', life.zone, (event,))
                break
    for name, lives in past.by_name.items():
        for former, later in itertools.permutations([each for each in lives if each.readings], 2):
            if former.is_before(later):
                highest, lowest = former.readings[-1], later.readings[0]
                if not newer(lowest[2], highest[2]):
                    yield Breach('serials', f'the zone of {later.create.name()} has serial {lowest[2]}, and the former '
                                 f'one of this name had {highest[2]}', name, (highest[3], lowest[3]))
    for (server, name), events in past.observed.items():
        yield from _serials_of_server(past, server, name, events)


def _serials_of_server(past: Past, server: str, name: str, events: Sequence[Event]) -> Iterator[Breach]:
    newest: Event | None = None
    for event in sorted((each for each in events if each['serial'] is not None), key=lambda each: each['t']):
        if newest is not None and event['asked'] >= newest['t'] and newer(newest['serial'], event['serial']) and (
                not past.is_disturbed(server, newest['asked'], event['t'])
                and not _is_canary_no_more(past, newest, event)):
            yield Breach('serials', f'{server} serves {event["serial"]} after {newest["serial"]}', name,
                         (newest, event))
            return
        if newest is None or not newer(newest['serial'], event['serial']) or (
                past.is_disturbed(server, newest['asked'], event['t'])):
            newest = event
        life = past.lives.get(event.get('life') or 0)
        later = None if life is None or past.is_spoilt(server, event['t']) else life.serial_after(event['t'])
        if later is not None and newer(event['serial'], later):
            yield Breach('serials', f'{server} serves {event["serial"]}, and the API tells {later} afterwards', name,
                         (event,))
            return


def _is_canary_no_more(past: Past, newest: Event, event: Event) -> bool:
    """Whether a canary deleted the zone, became one of the servers that wait, and serves what another of these has."""
    server, zone = event['server'], event['zone']
    return any(how['canary'] == server and newest['asked'] <= end <= event['t'] for _, end, how in past.stages) and any(
        each['serial'] is None and newest['t'] <= each['asked'] and each['t'] <= event['asked']
        for each in past.observed[server, zone]) and any(
        each['serial'] == event['serial'] for other in past.servers if other != server
        for each in past.observed.get((other, zone), ()))


def _active(past: Past) -> Iterator[Breach]:
    for life in past.lives.values():
        told: set[int] = set()
        for event in sorted((each for each in life.shown if each['status'] == 'ACTIVE'), key=lambda each: each['t']):
            serial = event['serial']
            if serial in told:
                continue
            told.add(serial)
            if event.get('signed') and serial not in {change.serial for change in life.changes if change.answered}:
                continue  # it may have renewed signatures alone
            since = max((asked for asked, _, other, _ in life.readings if newer(serial, other)
                         and asked <= event['t']), default=life.create.invoked)
            against = _against(past, life, event, since, lambda seen: seen['serial'] is None or (
                newer(serial, seen['serial']) if seen.get('life') == life.number else
                seen.get('life') in past.lives and past.lives[seen['life']].is_before(life)),
                life.may_be_deleted_from)
            if not _are_enough_without(past, against, event):
                yield Breach('active', f'ACTIVE at {serial}, which enough servers should have served by then; '
                             f'{", ".join(each["server"] for each in against)} did not', life.zone, (event, *against))


def _deleted(past: Past) -> Iterator[Breach]:
    for life in past.lives.values():
        gone = next((each for each in sorted(life.shown, key=lambda each: each['t'])
                     if each['status'] == GONE and each['asked'] > life.create.ended), None)
        if gone is None or not life.deletions:
            continue
        successor = min((each.create.invoked for each in past.by_name[life.zone]
                         if each is not life and each.create.outcome != 'fail'
                         and each.create.ended > life.may_be_deleted_from), default=math.inf)
        against = _against(past, life, gone, life.may_be_deleted_from,
                           lambda seen: seen.get('life') == life.number
                           and (seen['server'], life.zone) not in past.foreign, successor)
        if not _are_enough_without(past, against, gone):
            yield Breach('deleted', f'the zone of {life.create.name()} is gone for users, which enough servers '
                         f'should have dropped by then; {", ".join(each["server"] for each in against)} did not',
                         life.zone, (gone, *against))


def _against(past: Past, life: Life, told: Event, since: float, speaks_against: Callable[[Event], bool],
             until: float) -> list[Event]:
    """For each server that cannot have been as was *told*, the first answer to a later query, which says so.

    :param since: faults of a server after that excuse it
    :param until: answers after that say nothing
    """
    found = []
    for server in past.servers:
        seen = next((each for each in past.observed.get((server, life.zone), ())
                     if each['asked'] >= told['t'] and not each.get('why')), None)
        if seen is not None and seen['t'] < until and speaks_against(seen) and (
                not past.is_disturbed(server, since, seen['t']) and not past.is_spoilt(server, seen['t'])):
            found.append(seen)
    return found


def _are_enough_without(past: Past, against: Sequence[Event], told: Event) -> bool:
    return past.are_enough(set(past.servers).difference(each['server'] for each in against), told['t'])


def _former(past: Past) -> Iterator[Breach]:
    for (server, name), events in past.observed.items():
        newest: tuple[Event, Life] | None = None
        for event in sorted(events, key=lambda each: each['t']):
            life = past.lives.get(event.get('life') or 0)
            if life is None:
                continue
            if newest is not None and event['asked'] >= newest[0]['t'] and life.is_before(newest[1]) and (
                    not past.is_disturbed(server, newest[0]['asked'], event['t'])):
                yield Breach('former', f'{server} serves the zone of {life.create.name()} after that of '
                             f'{newest[1].create.name()}', name, (newest[0], event))
                break
            if newest is None or not life.is_before(newest[1]):
                newest = event, life


def _tenants(past: Past) -> Iterator[Breach]:
    for event in past.others:
        if event['e'] == 'foreign':
            yield Breach('tenants', f'{event["tenant"]}: {event["what"]}', None, (event,))
    for life in past.lives.values():
        for event in life.shown:
            if event['tenant'] != life.tenant and event['status'] != GONE:
                yield Breach('tenants', f'{event["tenant"]} was shown a zone of {life.tenant}', life.zone, (event,))
                break
        for change in (*life.changes, *life.deletions):
            if change.tenant != life.tenant and change.answered:
                yield Breach('tenants', f'{change.tenant} changed a zone of {life.tenant} by {change.name()}',
                             life.zone, tuple(change.events))
    for one, other in itertools.permutations(past.lives.values(), 2):
        if one.tenant != other.tenant and _are_at_once(one, other) and (
                lies_below(one.zone, other.zone) or lies_below(other.zone, one.zone)):
            yield Breach('tenants', f'{other.create.name()} of {other.tenant} made a zone above or below {one.zone}, '
                         f'which is a zone of {one.tenant}', other.zone, (one.create.events[-1],
                                                                          *other.create.events))


def _twice(past: Past) -> Iterator[Breach]:
    for name, lives in past.by_name.items():
        for one, other in itertools.permutations(lives, 2):
            if _are_at_once(one, other):
                yield Breach('twice', f'{other.create.name()} made a zone while that of {one.create.name()} was there',
                             name, (one.create.events[-1], *other.create.events))


def _are_at_once(one: Life, other: Life) -> bool:
    """Whether *other* was created while *one* certainly was there."""
    return (one.was_created and other.was_created and one.create.ended < other.create.invoked
            and other.create.ended < one.may_be_deleted_from)


def _equal(past: Past) -> Iterator[Breach]:
    first: dict[tuple[str, int | None, int], tuple[list[object], Event]] = {}
    for (server, name), events in past.observed.items():
        for event in events:
            if event['e'] != 'contents' or event['serial'] is None or not _is_trusted(past, event, events) or (
                    _serial_then(past, event, events) is not None):
                continue
            rrsets = sorted([each[0], each[1], each[2], sorted(each[3])] for each in event['rrsets'])
            other = first.setdefault((name, event.get('life'), event['serial']), (rrsets, event))
            if other[0] != rrsets or event.get('signatures') != other[1].get('signatures'):
                yield Breach('equal', f'{server} and {other[1]["server"]} have different contents at serial '
                             f'{event["serial"]}', name, (other[1], event))


def _healed(past: Past) -> Iterator[Breach]:
    if past.healed is None:
        return
    for name, lives in past.by_name.items():
        for life in lives:
            shown = past.after_healing(life.shown)
            if not shown and life.was_created and life.deleted_at == math.inf:
                yield Breach('healed', f'nobody has looked at the zone of {life.create.name()}', name)
            elif shown and shown[-1]['status'] != GONE and life.deleted_at < shown[-1]['asked']:
                yield Breach('healed', f'the zone of {life.create.name()} was deleted, and is {shown[-1]["status"]}',
                             name, (shown[-1],))
        living = _living(past, lives)
        if living is None:
            yield from _still_there(past, name)
        else:
            yield from _not_as_shown(past, living)


def _living(past: Past, lives: Iterable[Life]) -> Life | None:
    """The life that a name has in the end."""
    found = [life for life in lives if (shown := past.after_healing(life.shown)) and shown[-1]['status'] != GONE]
    return found[-1] if found else None


def _still_there(past: Past, name: str) -> Iterator[Breach]:
    for server in past.servers:
        seen = past.after_healing(past.observed.get((server, name), ()))
        if not seen or seen[-1].get('why'):
            yield Breach('healed', f'{server} has not said that it does not have the zone{_why(seen)}', name,
                         tuple(seen[-1:]))
        elif seen[-1]['serial'] is not None and (server, name) in past.foreign:
            contents = [each for each in seen if each['e'] == 'contents'][-1:]
            held = {each[1] for event in contents for each in event['rrsets']} - set(MANAGED)
            if held or not contents:
                yield Breach('healed', f'{server} has {", ".join(sorted(held)) or "something"} of a zone that there is '
                             'not, besides what somebody else wrote', name, (*contents, seen[-1]))
        elif seen[-1]['serial'] is not None:
            yield Breach('healed', f'{server} serves serial {seen[-1]["serial"]} of a zone that there is not', name,
                         (seen[-1],))


def _why(seen: Sequence[Event]) -> str:
    return f': {seen[-1]["why"]}' if seen and seen[-1].get('why') else ''


def _not_as_shown(past: Past, life: Life) -> Iterator[Breach]:
    shown = past.after_healing(life.shown)[-1]
    if shown['status'] != 'ACTIVE':
        yield Breach('healed', f'the zone is {shown["status"]} at serial {shown["serial"]}', life.zone, (shown,))
    for server in past.servers:
        seen = [each for each in past.after_healing(past.observed.get((server, life.zone), ()))
                if each['e'] == 'contents']
        if not seen or seen[-1].get('why') or seen[-1]['serial'] is None:
            yield Breach('healed', f'{server} does not hand over the zone{_why(seen)}', life.zone, tuple(seen[-1:]))
        elif (seen[-1].get('life'), seen[-1]['serial']) != (life.number, shown['serial']):
            yield Breach('healed', f'{server} serves serial {seen[-1]["serial"]} of life {seen[-1].get("life")}; the '
                         f'API shows {shown["serial"]} of {life.number}', life.zone, (shown, seen[-1]))
        else:
            yield from _wrong_contents(past, life, seen[-1])


def _foreign(past: Past) -> Iterator[Breach]:
    for (server, name), writes in past.foreign.items():
        deleted = min((life.may_be_deleted_from for life in past.by_name.get(name, ())), default=math.inf)
        for begun, written in writes:
            gone = next((each for each in past.observed[server, name] if each['asked'] >= written <= deleted
                         and not each.get('why') and not past.has_lost_zones(server, begun, each['t'])
                         and (each['serial'] is None or each.get('foreign') is False)), None)
            if gone is not None:
                yield Breach('foreign', f'{server} has no more what somebody else wrote there', name, (gone,))
                break


def _frozen(past: Past) -> Iterator[Breach]:
    for begin, end in past.freezes:
        for life, change in _acknowledged_between(past, begin, end):
            for event in _served_from(past, life, change, past.servers, end):
                yield Breach('frozen', f'{event["server"]} serves {event["serial"]}, and {change.name()} at '
                             f'{change.serial} was made under a freeze', life.zone, (change.events[-1], event))
                break


def _staged(past: Past) -> Iterator[Breach]:
    for begin, end, how in past.stages:
        others = [server for server in past.servers if server != how['canary']]
        for life, change in _acknowledged_between(past, begin, end):
            for event in _served_from(past, life, change, others, min(end, change.invoked + how['bake'])):
                if life.former is None:
                    yield Breach('staged', f'{event["server"]} serves {event["serial"]} within {how["bake"]} s of '
                                 f'{change.name()} at {change.serial}, and is no canary', life.zone,
                                 (change.events[-1], event))
                    break


def _acknowledged_between(past: Past, begin: float, end: float) -> Iterator[tuple[Life, Change]]:
    """Creations and changes, and of which zones, that were asked for and acknowledged between two times."""
    for life in past.lives.values():
        for change in (life.create, *life.changes):
            if change.answered and change.serial is not None and begin <= change.invoked and change.ended < end:
                yield life, change


def _served_from(past: Past, life: Life, change: Change, servers: Iterable[str], until: float) -> Iterator[Event]:
    """Answers of servers before a time that have a change, or a later one."""
    for server in servers:
        for event in past.observed.get((server, life.zone), ()):
            if event['t'] < until and event['serial'] is not None and event.get('life') == life.number and (
                    not newer(change.serial or 0, event['serial'])):
                yield event


def _valid(past: Past) -> Iterator[Breach]:
    for (server, name), events in past.observed.items():
        for event in events:
            if event.get('invalid') and _is_trusted(past, event, events):
                yield Breach('valid', f'{server} has {event["serial"]}, which is not valid: {event["invalid"]}', name,
                             (event,))


def _leftover(past: Past) -> Iterator[Breach]:
    for event in past.others:
        if event['e'] == 'leftover':
            yield Breach('leftover', f'{event["where"]}: {event["what"]}', None, (event,))


RULES = (_lost, _serials, _active, _deleted, _former, _tenants, _twice, _equal, _healed, _foreign, _frozen, _staged,
         _valid, _leftover)
