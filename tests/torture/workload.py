"""Clients that create, change and delete zones at random, by a seed, and write down what they did and were told.

There are two tenants.  Each has names of its own, some below others, and both compete for a few names.  Some names are
used for one zone alone, so that nothing hides what its deletion leaves behind.  The records of
an operation carry its number, and the mail address of a zone that of the operation which created it, so whoever looks
at a server knows what it comes from.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import ipaddress
import itertools
import random
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.torture.clients import Answer, Http, Json, Refused, Rrset
from tests.torture.history import CHANGE, CREATE, DELETE, GONE, RESTORE, History, newer

#: Types of records, each at names of its own, for a CNAME must be alone.
TYPES = ('A', 'AAAA', 'TXT', 'MX', 'CNAME')
#: RRsets of each type in a zone at most.
PLACES = 3
#: Which part of the changes a client follows until they are served, and how often it looks at most.
FOLLOWED, LOOKS = 0.5, 15
#: Which part of the operations is on names that are used once, how many of these a tenant has at the same time, and in
#: all of a run.
ONCE, ONCE_AT_A_TIME, ONCE_AT_MOST = 0.15, 3, 40
#: How such a name begins.
_ONCE = 'once'
#: Seconds that a client waits for an answer; then the outcome is unknown.
TIMEOUT = 12.0
#: 2001:db8::, of which addresses stand in examples.
_DOCUMENTED = 0x20010db8 << 96
_EMAIL = re.compile(r'op(\d+)@kit\.example')


def email_of(op: int) -> str:
    """The mail address of a zone that an operation creates."""
    return f'op{op}@kit.example'


def life_of_email(email: str) -> int | None:
    found = _EMAIL.fullmatch(email)
    return int(found[1]) if found else None


def life_of_rname(rname: str) -> int | None:
    """The number of the operation that created a zone, by the mail address in its SOA."""
    label, _, rest = rname.partition('.')
    return life_of_email(f'{label}@{rest.rstrip(".")}')


def records_of(rtype: str, op: int, two: bool = False) -> list[str]:
    """Records that tell an operation's number, as servers show them."""
    high, middle, low = op >> 16 & 255, op >> 8 & 255, op & 255
    addresses = [str(ipaddress.IPv6Address(_DOCUMENTED + (number << 64) + op)) for number in range(2)]
    one = {'A': f'10.{high}.{middle}.{low}', 'AAAA': addresses[0],
           'TXT': f'"op{op}"', 'MX': f'10 op{op}.kit.example.', 'CNAME': f'op{op}.kit.example.'}[rtype]
    other = {'A': f'172.{16 + high % 16}.{middle}.{low}', 'AAAA': addresses[1],
             'TXT': f'"also op{op}"', 'MX': f'20 op{op}.kit.example.'}.get(rtype)
    return [one, other] if two and other else [one]


def own_names(tenant: str, zones: int) -> list[str]:
    """Names of one tenant; every third lies below the one before."""
    found: list[str] = []
    for number in range(zones):
        above = found[-1] if number % 3 == 2 else f'{tenant}.example.'
        found.append(f'z{number}.{above}')
    return found


def contested_names(number: int) -> list[str]:
    """Names that both tenants want; every second lies below the one before."""
    return [f'c{each // 2}.both.example.' if each % 2 == 0 else f'below.c{each // 2}.both.example.'
            for each in range(number)]


@dataclasses.dataclass(slots=True)
class Zone:
    """A zone as the clients of its tenant know it.

    :ivar zone_id: None until the API has told it
    :ivar held: the RRsets that it may have
    :ivar is_going: whether somebody has asked for its deletion
    :ivar is_gone: whether the API does not show it any more
    :ivar is_signed: whether somebody has asked for it to be signed
    :ivar serials: that operations gave it, as far as they are known
    :ivar deleted_serial: that of its deletion, if that was acknowledged
    :ivar restored: the life that a restore gives it, or may have given it
    """

    life: int
    name: str
    tenant: str
    zone_id: str | None = None
    held: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    is_going: bool = False
    is_gone: bool = False
    is_signed: bool = False
    serials: list[int] = dataclasses.field(default_factory=list)
    deleted_serial: int | None = None
    restored: int | None = None


class Workload:
    """
    :param urls: of the APIs; each client uses one after the other
    :param tokens: by tenant
    :param clients: of each tenant
    :param zones: names of each tenant
    :param contested: names that both tenants want
    :param rate: operations a second, of each client, at most
    :param signing: whether zones are signed, too
    :param look: called with the name of a zone that the API has just shown as served, or as gone
    :ivar acknowledged: operations that were
    """

    def __init__(self, history: History, urls: Sequence[str], tokens: Mapping[str, str], seed: int, *,
                 clients: int = 3, zones: int = 6, contested: int = 4, rate: float = 4.0,
                 signing: bool = False,
                 look: Callable[[str], None] = lambda name: None) -> None:
        self._history = history
        self._urls = list(urls)
        self._tokens = dict(tokens)
        self._look = look
        self._pause = 1 / rate
        self._signing = signing
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._next = 0
        self._zones: dict[int, Zone] = {}
        self._names = {tenant: [*own_names(tenant, zones), *contested_names(contested)] for tenant in tokens}
        self._once = {tenant: list(range(ONCE_AT_A_TIME)) for tenant in tokens}
        self._wanted = collections.Counter[str]()
        self.acknowledged = 0
        self._threads = [threading.Thread(target=self._use, name=f'{tenant}{number}', args=(
            tenant, f'{tenant}{number}', random.Random(f'{seed}/{tenant}/{number}'), number))
            for tenant in tokens for number in range(clients)]
        self._threads += [threading.Thread(target=self._watch, name=f'watch {tenant}', args=(
            tenant, random.Random(f'{seed}/watch/{tenant}'))) for tenant in tokens]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begin nothing more, and wait for the answers to what is under way."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def names(self) -> list[str]:
        """The names of all zones that there are or were."""
        with self._lock:
            return sorted({zone.name for zone in self._zones.values()})

    def lone_names(self) -> list[str]:
        """The names that are used once, of zones that are not known to be going or gone."""
        with self._lock:
            return [zone.name for zone in self._zones.values() if zone.zone_id is not None and not zone.is_going
                    and not zone.is_gone and zone.name.startswith(_ONCE)]

    def delete(self, names: Sequence[str]) -> int:
        """Ask for the deletion of the zones of some names that are used once; how many were acknowledged."""
        acknowledged = 0
        for tenant, name in itertools.product(self._tokens, names):
            zone = self._zone_of(tenant, name)
            if zone is not None and zone.zone_id is not None:
                zone.is_going = True
                http = self._http(tenant, random.Random(name))
                acknowledged += self._do(self._number(), 'kit', tenant, DELETE, name, zone.life, [],
                                         functools.partial(http.delete, zone.zone_id)) is not None
        return acknowledged

    def look_at_all(self) -> None:
        """Write down what the API shows of each zone that may be there, and which are gone; some may not be said."""
        for tenant in self._tokens:
            http = self._http(tenant, random.Random(0))
            try:
                self._list(tenant, http, complete=True)
            except Exception:  # whatever ails the API: who calls looks again
                continue

    def delete_once(self) -> None:
        """Have the clients turn to the names that are used once, of which most are deleted then."""
        with self._lock:
            self._wanted.update(dict.fromkeys(self._once, ONCE_AT_A_TIME))

    # Operations

    def _use(self, tenant: str, client: str, chance: random.Random, number: int) -> None:
        """A client's operations, one after the other."""
        apis = [Http(url, self._tokens[tenant], TIMEOUT, plain=number % 2 == 1) for url in self._urls]
        while not self._stopping.wait(chance.uniform(0, 2 * self._pause)):
            life = self._operate(tenant, client, chance.choice(apis), chance)
            if life is not None and chance.random() < FOLLOWED:
                self._follow(tenant, life, chance)

    def _operate(self, tenant: str, client: str, api: Http, chance: random.Random) -> int | None:
        """One operation at random; the life of the zone that it has changed, None if it has not."""
        with self._lock:
            wanted = self._wanted[tenant] > 0
            self._wanted[tenant] -= wanted
        once = self._once_name(tenant, chance) if wanted or chance.random() < ONCE else None
        name = once or chance.choice(self._names[tenant])
        zone = self._zone_of(tenant, name)
        zone_id = None if zone is None else zone.zone_id
        what = chance.random()
        if zone is None and once is None and what < 0.6 and (gone := self._deleted(tenant, name)) is not None:
            op = self._number()
            return self._do(op, client, tenant, RESTORE, name, gone.life, [], lambda: api.restore(gone.zone_id or ''))
        # Now and then in vain, and where nobody knows whether it was created.
        if zone is None or what < (0.3 if zone_id is None else 0.02):
            op, rrsets = self._number(), []
            if chance.random() < 0.5:
                rrsets = self._new_rrsets(name, op, chance, chance.randint(1, 4))
            return self._do(op, client, tenant, CREATE, name, op, rrsets,
                            lambda: api.create(name, email_of(op), rrsets))
        if zone_id is None:
            return None
        if what < (0.8 if once else 0.14):
            zone.is_going, op = True, self._number()
            return self._do(op, client, tenant, DELETE, name, zone.life, [], lambda: api.delete(zone_id))
        if what < 0.17:
            self._trespass(tenant, zone_id, chance)
            return None
        if what < 0.25 and zone.serials:
            return self._revert(client, tenant, zone, api, chance)
        if self._signing and what < 0.4:
            self._sign(zone, api, chance)
            return None
        op = self._number()
        rrsets = self._new_rrsets(name, op, chance, chance.randint(1, 3), zone)
        return self._do(op, client, tenant, CHANGE, name, zone.life, rrsets, lambda: api.change(zone_id, rrsets))

    def _revert(self, client: str, tenant: str, zone: Zone, api: Http, chance: random.Random) -> int | None:
        """Have a zone be as it was at a serial that it had; exactly as that was planned, or not at all."""
        zone_id, to = zone.zone_id or '', chance.choice(zone.serials)
        try:
            present, rrsets = api.plan_revert(zone_id, to)
        except Exception:  # nothing was asked to be done
            return None
        return self._do(self._number(), client, tenant, CHANGE, zone.name, zone.life, rrsets,
                        lambda: api.revert(zone_id, to, present)) if rrsets else None

    @staticmethod
    def _sign(zone: Zone, api: Http, chance: random.Random) -> None:
        """Have a zone signed; or, where that was asked for, keys rolled, the parent's DS confirmed, or signing end."""
        ask = functools.partial(api.dnssec, zone.zone_id or '')
        was_signed, zone.is_signed = zone.is_signed, True
        with contextlib.suppress(Exception):  # nobody need know what came of it
            if not was_signed or chance.random() < 0.2:
                ask('POST', body={'policy': chance.choice(('default', 'hashed'))})
            else:
                chance.choice((
                    lambda: ask('POST', '/tasks/roll', {'role': 'ZSK'}),
                    lambda: ask('POST', '/tasks/roll', {'role': 'KSK'}),
                    lambda: ask('POST', '/tasks/confirm_ds', {'present': True}),
                    lambda: ask('POST', '/tasks/confirm_ds', {'present': False}),
                    lambda: ask('DELETE'), lambda: ask('DELETE', '?force=true')))()

    def _do(self, op: int, client: str, tenant: str, kind: str, name: str, life: int, rrsets: Sequence[Rrset],
            act: Callable[[], Answer]) -> int | None:
        """One operation, written down with what came of it; the zone's life if it was acknowledged."""
        changes = [list(each) for each in rrsets]
        with self._lock:
            if kind == RESTORE:
                self._zones[life].restored = op
                self._zones[op] = Zone(op, name, tenant, held=set(self._zones[life].held),
                                       is_signed=self._zones[life].is_signed,
                                       serials=list(self._zones[life].serials))
            elif kind == CREATE:
                self._zones[op] = Zone(op, name, tenant)
        more = {'deleted_serial': self._zones[life].deleted_serial} if kind == RESTORE else {}
        self._history.add('invoke', op=op, client=client, tenant=tenant, type=kind, zone=name, life=life,
                          changes=changes, **more)
        try:
            answer = act()
        except Refused as error:
            self._history.add('fail', op=op, code=error.code, why=str(error)[:200])
            if kind in (CREATE, RESTORE):
                with self._lock:
                    self._zones[op].is_gone = True
            elif error.code in (404, 409):
                self._zones[life].is_going |= kind == DELETE and ' DS' not in str(error)
            return None
        except Exception as error:  # nobody knows what came of it
            self._history.add('unknown', op=op, code=None, why=f'{type(error).__name__}: {error}'[:200])
            return None
        self._history.add('ok', op=op, zone_id=answer.zone_id, serial=answer.serial, code=answer.code)
        with self._lock:
            self.acknowledged += 1
            life = op if kind == RESTORE else life
            zone = self._zones[life]
            zone.zone_id = zone.zone_id or answer.zone_id
            if kind == DELETE:
                zone.deleted_serial = answer.serial
            elif answer.serial is not None:
                zone.serials.append(answer.serial)
            for rrset_name, rtype, _, records in rrsets:
                (zone.held.add if records else zone.held.discard)((rrset_name, rtype))
        return life

    def _new_rrsets(self, name: str, op: int, chance: random.Random, number: int, zone: Zone | None = None
                    ) -> list[Rrset]:
        """Some RRsets, at different places; now and then one that is held is to be deleted."""
        found: dict[tuple[str, str], Rrset] = {}
        held = sorted(zone.held) if zone is not None else []
        for _ in range(number):
            if held and chance.random() < 0.25:
                key = chance.choice(held)
                found[key] = (*key, 60, [])
            else:
                rtype = chance.choice(TYPES)
                key = f'{rtype.lower()}{chance.randrange(PLACES)}.{name}', rtype
                found[key] = (*key, 60 + op % 60, records_of(rtype, op, chance.random() < 0.3))
        return list(found.values())

    def _trespass(self, tenant: str, zone_id: str, chance: random.Random) -> None:
        """Another tenant asks for the zone, and for changes of it."""
        other = chance.choice([each for each in self._tokens if each != tenant])
        method, path, body = chance.choice([
            ('GET', f'/v2/zones/{zone_id}', None), ('GET', f'/v2/zones/{zone_id}/recordsets', None),
            ('GET', f'/v2/zones/{zone_id}/servers', None), ('DELETE', f'/v2/zones/{zone_id}', None),
            ('POST', f'/v2/zones/{zone_id}/changes', {'changes': [
                {'name': 'trespass.example.', 'type': 'A', 'records': ['192.0.2.66']}]})])
        try:
            code, _ = self._http(other, chance).send(method, path, json=body)
        except Exception:  # no answer tells nothing
            return
        if code < 300:
            self._history.add('foreign', tenant=other, what=f'{method} {path} of {tenant} was answered with {code}')

    # Looking

    def _watch(self, tenant: str, chance: random.Random) -> None:
        """Look at the tenant's zones, one after the other, and now and then at the list of all."""
        while not self._stopping.wait(self._pause / 2):
            http = self._http(tenant, chance)
            with self._lock:
                zones = [zone for zone in self._zones.values() if zone.tenant == tenant and not zone.is_gone
                         and zone.zone_id is not None]
            try:
                if not zones or chance.random() < 0.1:
                    self._list(tenant, http)
                else:
                    self._show(http, chance.choice(zones))
            except Exception:  # whatever ails the API: it is looked at again
                continue

    def _follow(self, tenant: str, life: int, chance: random.Random) -> None:
        """Look at a zone that was changed just now, again and again until it is served or gone, for a short while."""
        with self._lock:
            zone = self._zones[life]
        http = self._http(tenant, chance)
        for _ in range(LOOKS):
            try:
                if zone.zone_id is None or self._show(http, zone) in ('ACTIVE', GONE):
                    return
            except Exception:  # whatever ails the API
                return
            if self._stopping.wait(0.03):
                return

    def _show(self, http: Http, zone: Zone) -> str | None:
        """Which status the API shows; None when it does not say."""
        asked = self._history.now()
        code, shown = http.send('GET', f'/v2/zones/{zone.zone_id}')
        if code not in (200, 404):
            return None
        self._shown(asked, zone.tenant, zone, None if code == 404 else shown)
        return GONE if code == 404 else str(shown['status'])

    def _list(self, tenant: str, http: Http, complete: bool = False) -> None:
        """What the list of a tenant's zones has; with *complete* also that it has not the others."""
        asked = self._history.now()
        with self._lock:
            known = [zone for zone in self._zones.values() if zone.tenant == tenant]
        found: dict[int, Json] = {}
        code, page = http.send('GET', '/v2/zones', params={'limit': '1000'})
        if code != 200:
            return
        for shown in page['zones']:
            life = life_of_email(shown['email'])
            if life is not None:
                found[self._life(life, shown['serial'])] = shown
        for life, shown in found.items():
            with self._lock:
                zone = self._zones.get(life)
            if zone is not None:
                zone.zone_id = shown['id']
                self._shown(asked, tenant, zone, shown)
        if complete:
            for zone in known:
                if zone.life not in found:
                    self._shown(asked, tenant, zone, None)

    def _shown(self, asked: float, tenant: str, zone: Zone, shown: Json | None) -> None:
        with self._lock:  # what is asked for a life that a restored one goes on with is answered for that one
            signed = any(each.is_signed for each in self._zones.values() if each.zone_id == zone.zone_id)
        details: dict[str, Any] = {'asked': asked, 'tenant': tenant, 'zone': zone.name, 'zone_id': zone.zone_id,
                                   'life': zone.life, 'signed': signed}
        if shown is None:
            self._history.add('shown', **details, status=GONE, action=None, serial=None)
            zone.is_gone = True
            self._look(zone.name)
            return
        self._history.add('shown', **details, status=shown['status'], action=shown['action'], serial=shown['serial'])
        zone.is_going |= shown['action'] == 'DELETE'
        if shown['status'] == 'ACTIVE':
            self._look(zone.name)

    def _once_name(self, tenant: str, chance: random.Random) -> str | None:
        """A name that no deleted zone has had; None when the tenant has used up its share."""
        place = chance.randrange(ONCE_AT_A_TIME)
        with self._lock:
            numbers = self._once[tenant]
            name = f'{_ONCE}{numbers[place]}.{tenant}.example.'
            zones = [zone for zone in self._zones.values() if zone.name == name]
            if zones and all(zone.is_going or zone.is_gone for zone in zones):
                numbers[place] = max(numbers) + 1
                name = f'{_ONCE}{numbers[place]}.{tenant}.example.'
            return name if numbers[place] < ONCE_AT_MOST else None

    def _life(self, life: int, serial: int) -> int:
        """Which life of a zone that may have been restored has a serial."""
        with self._lock:
            zone = self._zones.get(life)
            while zone is not None and zone.restored is not None and zone.deleted_serial is not None and (
                    newer(serial, zone.deleted_serial)):
                zone = self._zones[zone.restored]
        return life if zone is None else zone.life

    def _deleted(self, tenant: str, name: str) -> Zone | None:
        """The latest zone of a name, if it was deleted and nobody has tried to restore it."""
        with self._lock:
            zone = next((zone for zone in reversed(self._zones.values()) if (zone.tenant, zone.name) == (tenant, name)),
                        None)
            return zone if zone and zone.deleted_serial is not None and zone.restored is None else None

    def _zone_of(self, tenant: str, name: str) -> Zone | None:
        """The latest zone of a name that is not known to be going or gone."""
        with self._lock:
            return next((zone for zone in reversed(self._zones.values()) if (zone.tenant, zone.name) == (tenant, name)
                         and not zone.is_going and not zone.is_gone), None)

    def _http(self, tenant: str, chance: random.Random) -> Http:
        return Http(chance.choice(self._urls), self._tokens[tenant], TIMEOUT)

    def _number(self) -> int:
        with self._lock:
            self._next += 1
            return self._next
