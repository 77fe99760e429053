"""octoDNS's validators in a configuration, as rules of validation here.

What an RFC forbids is always refused, and cannot be disabled.  Of the others, those that are enabled are told as
warnings, unless they are disabled; in octoDNS they refuse the zone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol import rules

#: Told as warnings: the set of octoDNS, our rule, and the type of record that it is about.
WARNINGS = {
    'no-cname-loop': ('strict', 'cname-loop', 'CNAME'),
    'mx-target-not-cname': ('strict', 'target-alias', 'MX'),
    'ns-target-not-cname': ('strict', 'target-alias', 'NS'),
    'srv-target-not-cname': ('strict', 'target-alias', 'SRV'),
    'glue-for-in-zone-ns': ('strict', 'target-missing', 'NS'),
    'mx-target-resolvable-in-zone': ('best-practice', 'target-missing', 'MX'),
    'srv-target-resolvable-in-zone': ('best-practice', 'target-missing', 'SRV'),
    'multi-value-ns': ('best-practice', 'ns-count', 'NS'),
}
#: Always checked, since an RFC forbids what they are against.
ALWAYS = frozenset((
    'cname-coexistence cname-root-rfc root-cname dname-coexistence name-rfc ttl-rfc healthcheck dynamic geo alias-root'
    ' ip-value-rfc target-value-rfc targets-value-rfc chunked-value-rfc loc-value-rfc openpgpkey-value-rfc'
    ' svcb-value-rfc https-value-rfc urlfwd-value').split()) | {
    f'{rtype}-value{end}' for rtype in ('caa', 'ds', 'mx', 'naptr', 'srv', 'sshfp', 'tlsa', 'uri')
    for end in ('', '-rfc')}
#: Not checked here.
NOT_HERE = frozenset((
    'caa-best-practices cname-target-not-cname cname-target-resolvable-in-zone mail spf-record-type srv-name'
    ' srv-name-rfc uri-name uri-name-rfc target-value-not-ip targets-value-not-ip mx-value-not-ip srv-value-not-ip'
).split()) | {f'{rtype}-value-best-practice' for rtype in (
    'target', 'targets', 'caa', 'ds', 'svcb', 'https', 'mx', 'naptr', 'srv', 'sshfp', 'tlsa')}
SETS = ('legacy', 'strict', 'best-practice')
Note = Callable[[str, str], object]


def enabled(settings: Mapping[str, Any], note: Note) -> frozenset[str]:
    """The warnings that ``manager.validators`` enables."""
    place, switched_on = 'manager.validators', set[str]()
    for word in _texts(f'{place}.enabled', settings.get('enabled'), note):
        if word not in SETS:
            note(f'{place}.enabled', f'there is no set {word}; there are {", ".join(SETS)}')
        switched_on.update(id for id, (kept_in, _, _) in WARNINGS.items() if kept_in == word)
    for where, id in _ids(place, settings, 'validators', note):
        if id in WARNINGS:
            switched_on.add(id)
        elif id not in ALWAYS:
            note(where, f'{id} is not checked here; there are {", ".join(sorted(WARNINGS))}')
    return frozenset(switched_on) - disabled(place, settings, note)


def disabled(place: str, settings: Mapping[str, Any], note: Note) -> frozenset[str]:
    """The warnings that ``validators`` of a zone, or of all zones, disables."""
    switched_off = set[str]()
    for where, id in _ids(place, settings, 'disable_validators', note):
        if id in ALWAYS:
            note(where, f'{id} cannot be disabled: an RFC forbids what it is against; a zone or record that is lenient '
                        'may have it, unless its target is the pool')
        elif id not in WARNINGS and id not in NOT_HERE:
            note(where, f'{id} is unknown; there are {", ".join(sorted(WARNINGS))}')
        switched_off.add(id)
    return frozenset(switched_off)


def warnings(zone: Zone, ids: Iterable[str]) -> Iterator[rules.Violation]:
    """What the validators *ids* have against a zone."""
    about = {WARNINGS[id][1:] for id in ids}
    if zone.root_ns is None:  # the target has its own
        about.discard(('ns-count', 'NS'))
    if about:
        contents: dict[str, dict[str, tuple[int, tuple[str, ...]]]] = {}
        for rrset in zone:
            contents.setdefault(rrset.name, {})[rrset.type] = rrset.ttl, rrset.rdatas
        yield from (violation for violation in rules.of_zone(zone.name, contents)
                    if (violation.rule.id, violation.type) in about)


def _ids(place: str, settings: Mapping[str, Any], key: str, note: Note) -> Iterator[tuple[str, str]]:
    """The ids below *key*: by type of record, and of zones; each with its place."""
    for where, kind in (('', settings), ('.record', settings.get('record')), ('.zone', settings.get('zone'))):
        ids = (kind or {}).get(key) if isinstance(kind or {}, dict) else None
        for rtype, words in ids.items() if isinstance(ids, dict) else (('', ids),):
            path = f'{place}{where}.{key}' + (f'.{rtype}' if rtype else '')
            yield from ((path, word) for word in _texts(path, words, note))


def _texts(place: str, words: Any, note: Note) -> list[str]:
    if words is None or isinstance(words, list) and all(isinstance(word, str) for word in words):
        return words or []
    note(place, 'must be a list of texts')
    return []
