"""The rules of validation: what a zone may contain, each rule with an id, a level and a source.

An *error* is what an RFC forbids or no server can serve; it is refused wherever records come in.  *server* is what one
make of server does not take: drivers declare it (:class:`ServerLimit`), and it is refused in pools with such a server.
A *warning* is about good practice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype

from designate_pool.model import names
from designate_pool.model.words import Word
from designate_pool.protocol.names_and_rdata import lies_in, parse_rdata

#: Texts of data at one name, by type; and of a whole zone, by name and type, with the TTL.
Sets = Mapping[str, Collection[str]]
Contents = Mapping[str, Mapping[str, tuple[int, Collection[str]]]]


class Level(Word):
    """What is done about a violation."""

    ERROR = 'error'
    SERVER = 'server'
    WARNING = 'warning'


class Rule(NamedTuple):
    """A rule; *source* says where it is written."""

    id: str
    level: Level
    source: str


class Violation(NamedTuple):
    """A recordset that a rule is against; *field* is what of it is wrong: ``name``, ``type`` or ``records``."""

    rule: Rule
    name: str
    type: str
    field: str
    why: str

    def __str__(self) -> str:
        return f'{self.name} {self.type}: {self.why}'


class ServerLimit(NamedTuple):
    """What a make of server does not take: more than *limit* of *what*.

    :ivar what: of a recordset ``records``; ``octets`` of one record's data; ``parameters`` of an SVCB or HTTPS record;
        ``iterations`` of NSEC3PARAM; or the name of a type, of which it takes *limit* records at a name.  Of a name
        ``types``.  Of a zone ``signatures``, and ``zone``: characters of its name beside letters, digits, ``-``, ``_``,
        ``/`` and dots
    :ivar why: the make, with its version where that matters
    """

    what: str
    limit: int
    why: str


RULES = {rule.id: rule for rule in (
    Rule('cname-alone', Level.ERROR, 'RFC 1034 section 3.6.2'),
    Rule('cname-apex', Level.ERROR, 'RFC 1034 section 3.6.2'),
    Rule('dname-below', Level.ERROR, 'RFC 6672 section 2.4'),
    Rule('dname-ns', Level.ERROR, 'RFC 6672 section 2.3'),
    Rule('ds-apex', Level.ERROR, 'RFC 4035 section 2.4'),
    Rule('ns-wildcard', Level.ERROR, 'RFC 4592 section 4.2'),
    Rule('nsec3-owner', Level.ERROR, 'RFC 5155 section 3'),
    Rule('naptr-regexp', Level.ERROR, 'RFC 3402 section 3.2'),
    Rule('x25-address', Level.ERROR, 'RFC 1183 section 3.1'),
    Rule('nsap-address', Level.ERROR, 'RFC 1706 section 5'),
    Rule('svcb-dohpath', Level.ERROR, 'RFC 9461 section 5'),
    Rule('apl-family', Level.ERROR, 'RFC 3123 section 4'),
    Rule('ipseckey-key', Level.ERROR, 'RFC 4025 section 2.4'),
    Rule('nsec3-iterations', Level.ERROR, 'RFC 5155 section 10.3'),
    Rule('tlsa-port', Level.ERROR, 'RFC 6698 section 3'),
    Rule('rrsig-labels', Level.ERROR, 'RFC 4034 section 3.1.3'),
    Rule('rrset-size', Level.ERROR, 'RFC 1035 section 4.2.2'),
    Rule('server-limit', Level.SERVER, "the driver's Capabilities"),
    Rule('target-missing', Level.WARNING, 'RFC 1912 section 2.8'),
    Rule('target-alias', Level.WARNING, 'RFC 2181 section 10.3'),
    Rule('cname-loop', Level.WARNING, 'RFC 1034 section 3.6.2'),
    Rule('ds-delegation', Level.WARNING, 'RFC 4035 section 2.4'),
    Rule('ns-count', Level.WARNING, 'RFC 1034 section 4.1'),
    Rule('ns-ttl', Level.WARNING, 'RFC 1912 section 2.2'),
    Rule('spf-count', Level.WARNING, 'RFC 7208 section 3.2'),
    Rule('spf-dmarc', Level.WARNING, 'RFC 7489 section 6.3'),
)}

#: The octets of a message that are not those of records, with a TSIG record, the longest name as that of the zone, and
#: another one as the owner.
_MESSAGE, _LARGEST = 955, 65535
#: Octets of a record in an answer beside its data.
_HEADER = 12
_TLSA_PORT = re.compile(r'_([0-9]{1,63})\._(?:tcp|udp|sctp)\.', re.IGNORECASE)
_HASH = re.compile(r'[0-9a-v]{32}')
_DOH_PATH = re.compile(rb'/.*\{\?dns\}', re.DOTALL)
_OF_ZONE_NAMES = re.compile(r'(?<!\\)\.|[a-z0-9_/-]')
_AT_APEX = {'SOA', 'NS'}
_BESIDE_CNAME = frozenset({'CNAME', 'RRSIG', 'NSEC'})
#: What the signer of a zone has below a DNAME at the apex too (RFC 6672 section 5.3.4).
_OF_SIGNER = frozenset({'NSEC3', 'RRSIG'})
#: Made by whoever signs the zone.
_OF_SIGNERS = frozenset({'RRSIG', 'NSEC', 'NSEC3', 'TYPE65534'})
#: Numbers of types for private use (RFC 6895 section 3.1), which every server takes as octets.
_PRIVATE = range(65280, 65534)
#: Octets of data for a character of its text at most: ``::`` is an address of 16.
_EXPANSION = 8
#: Characters of the records of one recordset, up to which they fit into a message.
LEAST_OVERFLOW = 4600


def at_name(zone: str, name: str, sets: Sets, dnames: Collection[str] = ()) -> Iterator[Violation]:
    """The errors among the recordsets at one name, but for those of :func:`wrong_data`.

    :param dnames: the names of the zone that have a DNAME
    """
    if dnames:
        above = next((upper for upper in names.above(name) if upper in dnames and lies_in(upper, zone)), None)
        # Signatures of other types than NSEC3 are of records that cannot be there.
        for rtype in sorted(sets.keys() - (_OF_SIGNER if 'NSEC3' in sets else set())) if above is not None else ():
            yield _fault('dname-below', name, rtype, 'name', f'it lies below {above}, whose DNAME stands for all names '
                                                             'below it')
    if not PLACED.isdisjoint(sets):
        yield from _placed(zone, name, sets)
    for rtype, texts in sets.items():
        most = _EXPANSION * sum(map(len, texts))
        if overflows(len(texts), most) and overflows(len(texts), sum(_octets(rtype, text) for text in texts)):
            yield _fault('rrset-size', name, rtype, 'records', 'they do not fit into a DNS message')


def overflows(count: int, octets: int) -> bool:
    """Whether *count* records of one recordset, with so many octets of data together, do not fit into a message."""
    return _MESSAGE + _HEADER * count + octets > _LARGEST


def wrong_data(name: str, sets: Sets) -> Iterator[Violation]:
    """The errors in the data of records at one name."""
    for rtype in sets.keys() & _DATA.keys():
        for text in sets[rtype]:
            why = mistake(rtype, parse_rdata(rtype, text))
            if why is not None:
                yield Violation(RULES[_DATA[rtype][0]], name, rtype, 'records', why)


def refused_type(rtype: dns.rdatatype.RdataType) -> str | None:
    """Why users cannot have records of a type."""
    word = dns.rdatatype.to_text(rtype)
    if dns.rdatatype.is_metatype(rtype) or word in ('OPT', 'TSIG', 'TKEY'):
        return f'{word} is for messages, not for zones'
    if word in _OF_SIGNERS:
        return f'{word} is made by whoever signs the zone; a zone that is signed already can be a secondary zone'
    parser = dns.rdata.get_rdata_class(dns.rdataclass.IN, rtype)  # type: ignore[no-untyped-call]
    is_checked = parser not in (None, dns.rdata.GenericRdata) or rtype in _PRIVATE
    return None if is_checked else f'records of type {word} cannot be checked here'


def mistake(rtype: str, parsed: dns.rdata.Rdata) -> str | None:
    """What a rule has against the data of one record."""
    if rtype not in _DATA:
        return None
    rule, is_right, why = _DATA[rtype]
    return None if is_right(parsed) else f'{why} ({RULES[rule].source})'


def _placed(zone: str, name: str, sets: Sets) -> Iterator[Violation]:
    if 'CNAME' in sets:
        others = sets.keys() - _BESIDE_CNAME
        if name == zone:
            yield _fault('cname-apex', name, 'CNAME', 'type', 'a CNAME cannot be at the apex, beside SOA and NS')
        elif others:
            for rtype in ('CNAME', *sorted(others)):
                beside = ', '.join(sorted(others if rtype == 'CNAME' else sets.keys() - {rtype}))
                yield _fault('cname-alone', name, rtype, 'type',
                             f'{name} has {beside} already; a CNAME must be the only record at its name')
    if 'DNAME' in sets and 'NS' in sets and name != zone:
        for rtype in ('DNAME', 'NS'):
            yield _fault('dname-ns', name, rtype, 'type', 'DNAME and NS cannot be at one name but at the apex')
    if 'DS' in sets and name == zone:
        yield _fault('ds-apex', name, 'DS', 'type', 'DS records cannot be at the apex; they belong to the delegation '
                                                    'in the zone above')
    if 'NS' in sets and name.startswith('*.'):
        yield _fault('ns-wildcard', name, 'NS', 'name', 'NS records cannot be at a wildcard')
    if 'NSEC3' in sets and (not _HASH.fullmatch(name.partition('.')[0]) or name.partition('.')[2] != zone):
        yield _fault('nsec3-owner', name, 'NSEC3', 'name', 'not a hash in base32 below the apex')
    port = _TLSA_PORT.match(name) if 'TLSA' in sets else None
    if port is not None and int(port[1]) > 65535:
        yield _fault('tlsa-port', name, 'TLSA', 'name', f'{port[1]} is no port')


def refused(limits: Iterable[ServerLimit], name: str, rtype: str, texts: Collection[str]) -> Iterator[Violation]:
    """What servers do not take of a recordset, by what their drivers declare."""
    for what, limit, why in limits:
        size = 0
        if what == 'records' or what == rtype:
            size = len(texts)
        elif what == 'octets':
            size = max((_octets(rtype, text) for text in texts if _EXPANSION * len(text) > limit), default=0)
        elif what == 'parameters' and rtype in ('SVCB', 'HTTPS'):
            size = max((len(_parsed(rtype, text).params) for text in texts), default=0)
        elif what == 'iterations' and rtype == 'NSEC3PARAM':
            size = max((_parsed(rtype, text).iterations for text in texts), default=0)
        if size > limit:
            yield _fault('server-limit', name, rtype, 'records', why.format(size=size, limit=limit))


def refused_types(limits: Iterable[ServerLimit], zone: str, name: str, sets: Sets) -> Iterator[Violation]:
    """How many types servers do not take at a name; at the apex SOA and NS are counted in any case."""
    for what, limit, why in limits:
        # The signatures of each type are a type of their own.
        size = 0 if what != 'types' else len((sets.keys() | (_AT_APEX if name == zone else set())) - {'RRSIG'}) + len(
            {text.partition(' ')[0] for text in sets.get('RRSIG', ())})
        if size > limit:
            yield _fault('server-limit', name, max(sets), 'type', why.format(size=size, limit=limit))


def refused_zone(limits: Iterable[ServerLimit], zone: str) -> Iterator[Violation]:
    """What servers do not take of the name of a zone."""
    for what, limit, why in limits:
        if what == 'zone' and len(_OF_ZONE_NAMES.sub('', zone)) > limit:
            yield _fault('server-limit', zone, 'SOA', 'name', why.format(limit=limit))


def of_servers(limits: Sequence[ServerLimit], zone: str, contents: Mapping[str, Sets]) -> Iterator[Violation]:
    """All that servers do not take of a zone."""
    yield from refused_zone(limits, zone)
    for name, sets in contents.items() if limits else ():
        yield from refused_types(limits, zone, name, sets)
        for rtype, texts in sets.items():
            yield from refused(limits, name, rtype, texts)


def to_json(limits: Sequence[ServerLimit]) -> str:
    """Text that :func:`from_json` reads."""
    return json.dumps(limits) if limits else ''


def from_json(text: str) -> list[ServerLimit]:
    """What :func:`to_json` wrote."""
    return [ServerLimit(*values) for values in json.loads(text)] if text else []


def of_zone(zone: str, contents: Contents, limits: Sequence[ServerLimit] = ()) -> Iterator[Violation]:
    """All violations in a zone, errors first."""
    dnames = {name for name, sets in contents.items() if 'DNAME' in sets}
    texts = {name: {rtype: data for rtype, (_, data) in sets.items()} for name, sets in contents.items()}
    for name, at_this_name in texts.items():
        yield from at_name(zone, name, at_this_name, dnames)
        yield from wrong_data(name, at_this_name)
    yield from of_servers(limits, zone, texts)
    yield from _targets(zone, contents)
    yield from _mail(contents)
    for name in _looping(contents):
        yield _fault('cname-loop', name, 'CNAME', 'records', 'the aliases that follow it lead back to it')
    for name, sets in contents.items():
        if 'DS' in sets and 'NS' not in sets and name != zone:
            yield _fault('ds-delegation', name, 'DS', 'name', 'there are no NS records at its name')
    ttl, servers = contents.get(zone, {}).get('NS', (0, ()))
    if len(servers) < 2:
        yield _fault('ns-count', zone, 'NS', 'records', 'a zone should have two name servers at least')
    if servers and ttl < 60:
        yield _fault('ns-ttl', zone, 'NS', 'ttl', f'a TTL of {ttl} s has every resolver ask again all the time')


def _targets(zone: str, contents: Contents) -> Iterator[Violation]:
    """MX, NS and SRV records whose targets in the zone have no addresses."""
    cuts = {name for name, sets in contents.items() if name != zone and not sets.keys().isdisjoint({'NS', 'DNAME'})}
    for name, sets in contents.items():
        for rtype in sets.keys() & {'MX', 'NS', 'SRV'}:
            for text in sets[rtype][1]:
                target = text.rpartition(' ')[2].lower()
                if target == '.' or not lies_in(target, zone):
                    continue
                at_target = contents.get(target) or _wildcard(target, contents)
                if 'CNAME' in at_target:
                    yield _fault('target-alias', name, rtype, 'records', f'{target} is an alias (CNAME)')
                elif at_target.keys().isdisjoint({'A', 'AAAA'}) and (
                        cuts.isdisjoint(names.at_or_above(target)) or rtype == 'NS' and lies_in(target, name)):
                    yield _fault('target-missing', name, rtype, 'records', f'{target} has no address in this zone')


def _wildcard(name: str, contents: Contents) -> Mapping[str, Any]:
    return next((contents[f'*.{upper}'] for upper in names.above(name) if f'*.{upper}' in contents), {})


def _looping(contents: Contents) -> Iterator[str]:
    """The names whose CNAME leads back to them."""
    followed = set[str]()
    for name in contents:
        chain: dict[str, None] = {}
        while name not in followed and 'CNAME' in contents.get(name, ()):
            followed.add(name)
            chain[name] = None
            name = next(iter(contents[name]['CNAME'][1])).lower()
        if name in chain:
            yield from list(chain)[list(chain).index(name):]


def _mail(contents: Contents) -> Iterator[Violation]:
    """Policies about mail: SPF, and DMARC beside it."""
    for name, sets in contents.items():
        policies = [text for text in sets.get('TXT', (0, ()))[1] if text.lower().startswith('"v=spf1')]
        if len(policies) > 1:
            yield _fault('spf-count', name, 'TXT', 'records', 'more than one SPF record: receivers use none of them')
        dmarc = ''.join(contents.get(f'_dmarc.{name}', {}).get('TXT', (0, ()))[1]).lower().replace(' ', '')
        if len(policies) == 1 and re.search(r';p=(reject|quarantine)', dmarc) and re.search(
                r'[ "]([+?]all|all)\b', policies[0].lower()):
            yield _fault('spf-dmarc', name, 'TXT', 'records', 'DMARC has mail refused that fails, and SPF lets '
                                                              'everybody send')


def _fault(rule: str, name: str, rtype: str, field: str, why: str) -> Violation:
    source = RULES[rule].source
    return Violation(RULES[rule], name, rtype, field, f'{why} ({source})' if source.startswith('RFC') else why)


def _parsed(rtype: str, text: str) -> Any:
    return parse_rdata(rtype, text)


def _octets(rtype: str, text: str) -> int:
    try:
        return len(_parsed(rtype, text).to_wire() or b'')
    except (dns.exception.DNSException, ValueError):
        return 0


def _is_substitution(text: bytes) -> bool:
    """Whether it is delimiter, extended regular expression, delimiter, replacement, delimiter, flags."""
    delimiter, parts, escaped = text[:1], [b''], False
    if delimiter in b'0123456789\\i' or b'\0' in text:
        return False
    for octet in (text[at:at + 1] for at in range(1, len(text))):
        if octet == delimiter and not escaped:
            parts.append(b'')
        else:
            parts[-1] += octet
        escaped = octet == b'\\' and not escaped
    if len(parts) != 3 or parts[2].strip(b'i'):
        return False
    groups = _groups_of(parts[0])
    references = [int(digit) for digit in re.findall(rb'\\([0-9])', re.sub(rb'\\[^0-9]', b'', parts[1]))]
    return groups >= 0 and all(0 < reference <= groups for reference in references)


_CLASSES = b'alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit'
#: What a POSIX extended regular expression is made of; a character that it does not match is an error.
_TOKEN = re.compile(rb'(?P<repeat>[*+?]|\{(?P<low>[0-9]{1,3})(?:,(?P<high>[0-9]{0,3}))?\})|(?P<anchor>[$^])|'
                    rb'\\(?P<escaped>.)|(?P<open>\()|(?P<close>\))|(?P<or>\|)|'
                    rb'\[\^?(?P<set>\]?(?:\[:(?:' + _CLASSES + rb'):\]|[^]\[])*)\]|(?P<char>[^[]|\{(?![0-9]))',
                    re.DOTALL)


def _groups_of(expression: bytes) -> int:
    """The groups of a POSIX extended regular expression (IEEE 1003.2); -1 when it is none."""
    at = depth = groups = 0
    has_atom, may_repeat, may_be_empty = False, False, False
    while at < len(expression):
        token = _TOKEN.match(expression, at)
        if token is None or token['char'] == b'{' and expression[at + 1:at + 2].isdigit():
            return -1
        at = token.end()
        if token['repeat']:
            low, high = int(token['low'] or 0), int(token['high'] or token['low'] or 0)
            if not may_repeat or high < low or high > 255:
                return -1
            may_repeat = False
        elif token['open']:
            depth, groups, has_atom, may_repeat, may_be_empty = depth + 1, groups + 1, False, False, True
        elif token['close']:
            if depth and not has_atom and not may_be_empty:
                return -1
            depth, has_atom, may_repeat = max(0, depth - 1), True, True
        elif token['or']:
            if not has_atom:
                return -1
            has_atom, may_repeat, may_be_empty = False, False, False
        elif token['set'] == b'' or token['set'] is not None and any(
                low > high for low, high in re.findall(rb'(.)-([^]])', token['set'], re.DOTALL)):
            return -1
        elif token['escaped'] and token['escaped'] in b'123456789' and int(token['escaped']) > groups:
            return -1
        else:
            has_atom, may_repeat = True, not token['anchor']
    return groups if has_atom and not depth else -1


#: By type, the rule about one record's data, what tells right data, and what is wrong with other.
_DATA: dict[str, tuple[str, Callable[[Any], object], str]] = {
    'NAPTR': ('naptr-regexp', lambda rdata: not rdata.regexp or _is_substitution(rdata.regexp),
              'the regexp is no substitution, like !^.*$!sip:info@example.com!'),
    'X25': ('x25-address', lambda rdata: re.fullmatch(rb'[0-9]{4,}', rdata.address),
            'the address is not four digits or more'),
    'NSAP': ('nsap-address', lambda rdata: rdata.address, 'the address is empty'),
    'APL': ('apl-family', lambda rdata: all(item.family in (1, 2) for item in rdata.items),
            'an address family is neither 1 nor 2'),
    'IPSECKEY': ('ipseckey-key', lambda rdata: bool(rdata.algorithm) == bool(rdata.key),
                 'algorithm 0 is for no key, and others are for one'),
    'NSEC3PARAM': ('nsec3-iterations', lambda rdata: rdata.iterations <= 2500, 'more than 2500 iterations'),
    'RRSIG': ('rrsig-labels', lambda rdata: rdata.labels >= len(rdata.signer) - 1,
              'fewer labels than the name of its signer has'),
    **dict.fromkeys(('SVCB', 'HTTPS'), (
        'svcb-dohpath', lambda rdata: 7 not in rdata.params or _DOH_PATH.match(
            getattr(rdata.params[7], 'value', None) or b''), 'dohpath is no path with {?dns}')),
}
#: Types with a rule about their place; no other type makes :func:`at_name` find something, but for size and DNAME.
PLACED = frozenset({'CNAME', 'DNAME', 'DS', 'NS', 'NSEC3', 'TLSA'})
#: Types with a rule of their own.
RULED = PLACED | _DATA.keys()
