"""The faults: each brings itself about, makes sure that it did, ends, and tells how often it struck.

A fault is a generator function ``(trouble, target, chance)``: what is before its ``yield`` brings it about, what it
yields says how that was seen, what follows ends it, and what it returns is how often it struck; without that, once.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import random
import sqlite3
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import dns.exception
import dns.tsig
import requests

from designate_pool.errors import PoolError
from testing.bind import Named
from testing.knot import Knotd
from testing.nsd import Nsd
from testing.pdns import PowerDns
from tests.torture import commit_proxy, messages, name_servers
from tests.torture.backends import DATABASE
from tests.torture.history import History
from tests.torture.lab import BAKE, CANARY, CLAIM_SECONDS, KEY, Lab
from tests.torture.network import CLIENTS, Impairment
from tests.torture.nodes import Node, ServerNode, ServiceNode
from tests.torture.operators import Operator
from tests.torture.relay import Disturbance
from tests.torture.schedule import FaultKind

#: Seconds that a statement of the kit is tried.
_PATIENCE = 45
#: How many zones are deleted while a server is away, at most.
_DELETED = 3
#: Into how many zones whose name is used once, and into how many others, somebody else writes at once, at most.
_SHARED = 2
#: What asking or commanding a server may raise while another fault strikes it.
_TROUBLED = (AssertionError, PoolError, OSError, subprocess.SubprocessError, dns.exception.DNSException)
#: What a fault does: how it was seen to be there is yielded, how often it struck is returned.
Struck = Generator[str, None, 'int | None']


@dataclasses.dataclass(frozen=True, slots=True)
class Trouble:
    """What faults are brought about in.

    :ivar names: of the zones that there are or were
    :ivar moved: called with a server's id when it is elsewhere
    :ivar lone_names: of zones whose name no other zone gets
    :ivar delete: asks for the deletion of zones by name, and tells how many are acknowledged
    :ivar history: takes what somebody else writes on servers, and when the pool is frozen or has stages
    :ivar operator: who freezes the pool
    """

    lab: Lab
    messages: messages.Messages
    names: Callable[[], Sequence[str]]
    moved: Callable[[str], None]
    lone_names: Callable[[], Sequence[str]]
    delete: Callable[[Sequence[str]], int]
    history: History
    operator: Operator

    def node(self, name: str) -> Node:
        return self.lab.nodes[name]

    def server(self, name: str) -> ServerNode:
        return self.lab.server_nodes[name]

    def service(self, name: str) -> ServiceNode:
        return self.lab.services[name]


class NotInjected(Exception):
    """It could not be brought about, for another fault is in the way."""


def _spare(trouble: Trouble, target: str) -> None:
    """
    :raises NotInjected: when it is a node of a cluster that lacks another one
    """
    lab = trouble.lab
    for backend in (lab.database, lab.broker):
        if backend.is_cluster and target in [node.name for node in backend.nodes] and not (
                backend.is_whole() and not any(lab.supervisor.is_starting(node.name) for node in backend.nodes)):
            raise NotInjected('the cluster is not whole')


# Processes


def kill(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """SIGKILL, and started again at the end."""
    node = trouble.node(target)
    _spare(trouble, target)
    pids = [process.pid for process in node.family()]
    if not pids:
        raise NotInjected('it does not run')
    node.kill()
    yield f'killed {pids}'
    node.wanted = True
    return None


def restart(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Ended in good order, and started again at the end."""
    node = trouble.node(target)
    _spare(trouble, target)
    if not node.running:
        raise NotInjected('it does not run')
    node.stop()
    yield 'ended'
    node.wanted = True
    return None


def pause(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """SIGSTOP, SIGCONT at the end."""
    node = trouble.node(target)
    _spare(trouble, target)
    node.pause()
    if not node.paused:
        node.resume()
        raise NotInjected('it does not run')
    yield 'state T'
    node.resume()
    return None


def skew_clock(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """The clock jumps forward or back, and back at the end."""
    seconds = chance.choice([-300, -60, -CLAIM_SECONDS * 2, CLAIM_SECONDS * 2, 60, 300])
    return (yield from _skewed(trouble.service(target), seconds))


def wrong_server_clock(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """The clock of a name server is wrong, by more or less than TSIG allows.

    BIND and PowerDNS wait for times of day: after their clock was ahead, they refresh no zone until that time comes,
    and have to be started anew.
    """
    node = trouble.server(target)
    seconds = chance.choice([-7200, -600, -60, 60, 600, 7200])
    yield from _skewed(node, seconds)
    if seconds >= 600 and node.running:
        node.stop()
        node.wanted = True
    return None


def _skewed(node: ServiceNode | ServerNode, seconds: int) -> Struck:
    leader = node.leader()
    if leader is None or not node.clock.is_seen_by(leader):
        raise NotInjected('it does not run')
    node.clock.set(seconds)
    yield f'{seconds:+d} s'
    node.clock.set(0)
    return None


def other_concurrency(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Restarted with the other setting of ``concurrency``, which it keeps."""
    node = trouble.service(target)
    if not node.running:
        raise NotInjected('it does not run')
    node.stop()
    node.concurrency = 'threading' if node.concurrency == 'eventlet' else 'eventlet'
    node.wanted = True
    yield node.concurrency
    return None


# File systems


def fill_disk(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    node = trouble.node(target)
    _spare(trouble, target)
    node.fill_disk()
    if not node.is_disk_full():
        node.empty_disk()
        raise NotInjected('there is room left')
    yield 'ENOSPC'
    node.empty_disk()
    if trouble.lab.broker.is_cluster and node in trouble.lab.broker.nodes:
        # What has to be done: the quorum queues of such a node stand still until it is started again.
        node.kill()
        node.wanted = True
    return None


def forbid_writing(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    node = trouble.node(target)
    node.forbid_writing()
    try:
        if not node.is_read_only():
            raise NotInjected('it can be written to')
        yield 'EROFS'
    finally:
        node.allow_writing()
    return None


# The network


def cut(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Nothing gets through between two nodes, in either direction."""
    one, other = target.split('-')
    network = trouble.lab.network
    return (yield from _impaired(network.cut(one, other), network.cut(other, one)))


def cut_one_way(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    pair = target.split('-')
    chance.shuffle(pair)
    return (yield from _impaired(trouble.lab.network.cut(*pair)))


def lose_packets(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    one, other = target.split('-')
    network, share = trouble.lab.network, chance.choice([0.1, 0.3, 0.6])
    return (yield from _impaired(network.lose(one, other, share), network.lose(other, one, share)))


def disturb_packets(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Packets are late, doubled, and overtake each other."""
    one, other = target.split('-')
    network = trouble.lab.network
    odd = Disturbance(chance.choice([0.02, 0.2]), chance.choice([0.05, 0.5]), 0.2)
    return (yield from _impaired(network.disturb(one, other, odd), network.disturb(other, one, odd)))


def partition_broker(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Several services lose the broker at once, or all nodes of it."""
    return (yield from _cut_off(trouble, [node.name for node in trouble.lab.broker.nodes], chance))


def partition_database(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Several services lose the database at once."""
    return (yield from _cut_off(trouble, [DATABASE], chance))


def _cut_off(trouble: Trouble, targets: Sequence[str], chance: random.Random) -> Struck:
    names = [name for name in sorted(trouble.lab.services) if chance.random() < 0.5] or ['central1']
    return (yield from _impaired(*(trouble.lab.network.cut(*pair) for name in names for target in targets
                                   for pair in ((name, target), (target, name)))))


def isolate_node(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """A node of a cluster loses the others, and is still reached by who uses it."""
    _spare(trouble, target)
    lab = trouble.lab
    nodes = next(backend.nodes for backend in (lab.database, lab.broker) if lab.nodes[target] in backend.nodes)
    return (yield from _impaired(*(lab.network.cut(*pair) for node in nodes if node.name != target
                                   for pair in ((node.name, target), (target, node.name)))))


def isolate_clients(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Clients do not get the answers of an API."""
    return (yield from _impaired(trouble.lab.network.cut(target, CLIENTS)))


def answer_late(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """A server answers later than it is waited for, but for the observer."""
    late = Disturbance(delay=1.2, jitter=1.5)
    return (yield from _impaired(*(trouble.lab.network.disturb(target, name, late)
                                   for name in ('minidns1', 'minidns2', 'manager1', 'manager2'))))


def truncate_transfers(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """What a server transfers ends in a reset after a few octets."""
    octets = chance.choice([100, 300, 600])
    return (yield from _impaired(*(trouble.lab.network.reset_after(
        name, target, trouble.lab.primaries[0].port, octets) for name in ('minidns1', 'minidns2'))))


def _impaired(*impairments: Impairment) -> Struck:
    try:
        yield f'{len(impairments)} rules'
    finally:
        for each in impairments:
            each.end()
    return sum(each.packets for each in impairments)


# Messages


def double_messages(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Casts come twice, the second time up to a minute later."""
    return (yield from _messages(trouble, messages.DOUBLED))


def delay_messages(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Messages are taken from the queues of the services, and given back seconds later."""
    return (yield from _messages(trouble, messages.DELAYED))


def keep_messages(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Messages, and copies of casts, come two to four minutes late, or when all faults have ended."""
    return (yield from _messages(trouble, messages.KEPT))


def _messages(trouble: Trouble, fault: messages.MessageFault) -> Struck:
    before = trouble.messages.counts[fault.name]
    trouble.messages.fault = fault
    yield f'messages are {fault.name}'
    trouble.messages.fault = None
    return trouble.messages.counts[fault.name] - before


# The database's connections


def lose_commits(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Connections end at COMMIT, before the database gets it."""
    return (yield from _cut_commits(trouble, commit_proxy.BEFORE, chance))


def lose_commit_answers(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Connections end at COMMIT, which the database has carried out."""
    return (yield from _cut_commits(trouble, commit_proxy.AFTER, chance))


def cut_connections(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """All connections to the database end at once."""
    before = trouble.lab.commits.count(commit_proxy.CUT)
    trouble.lab.commits.order(commit_proxy.CUT)
    yield 'cut'
    return trouble.lab.commits.count(commit_proxy.CUT) - before


def fail_over(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """The primary is killed and the standby promoted; at the end the former primary is the standby."""
    database = trouble.lab.database
    _spare(trouble, database.nodes[0].name)
    former = database.fail_over()
    yield f'{former.name} killed, the other one promoted'
    database.rejoin(former)
    former.wanted = True
    return None


def _cut_commits(trouble: Trouble, verb: str, chance: random.Random) -> Struck:
    commits = trouble.lab.commits
    before = commits.count(verb)
    commits.order(verb, chance.randint(5, 40))
    yield 'told the proxy'
    commits.order(verb, 0)
    return commits.count(verb) - before


# Name servers


def wipe(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """A server is killed and comes back empty."""
    node = _killed_and_wiped(trouble, target)
    yield 'killed, state removed'
    node.wanted = True
    return None


def move(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """An empty server at another address takes a server's place; the services read their configuration anew."""
    node = _killed_and_wiped(trouble, target)
    node.move()
    trouble.lab.network.readdress(target, node.daemon.host)
    trouble.moved(node.server_id)
    trouble.lab.reload()
    yield f'now at {node.endpoint}'
    node.wanted = True
    return None


def _killed_and_wiped(trouble: Trouble, target: str) -> ServerNode:
    node = trouble.server(target)
    if not node.running:
        raise NotInjected('it does not run')
    if node.is_read_only():
        raise NotInjected('its disk is read-only')
    node.kill()
    node.wipe()
    return node


def miss_deletions(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """A server is killed, zones that it serves are deleted, and it comes back with them."""
    node = trouble.server(target)
    if not node.running:
        raise NotInjected('it does not run')
    served = []
    for name in trouble.lone_names():
        with contextlib.suppress(*_TROUBLED):
            if node.daemon.serial(name) is not None:
                served.append(name)
    if not served:
        raise NotInjected('it serves no zone whose name is used once')
    node.kill()
    try:
        deleted = trouble.delete(served[:_DELETED])
        yield f'killed, {deleted} of {", ".join(served[:_DELETED])} deleted'
    finally:
        node.wanted = True
    return deleted


def lose_zones(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """A server does not have some zones any more, and nobody was told."""
    node = trouble.server(target)
    names = list(trouble.names())
    lost = []
    for name in chance.sample(names, min(len(names), 5)):
        with contextlib.suppress(*_TROUBLED):
            if node.daemon.serial(name) is not None:
                name_servers.drop(node.daemon, name)
                lost.append(name)
    if not lost:
        raise NotInjected('it serves no zone')
    yield f'dropped {", ".join(lost)}'
    return len(lost)


def write_foreign(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Somebody else writes records into zones on a server that is fed by records."""
    node, history = trouble.server(target), trouble.history
    daemon: Any = node.daemon
    written = list[str]()
    for names in (list(trouble.lone_names()), list(trouble.names())):
        some = 0
        for name in chance.sample(names, len(names)):
            if some == _SHARED or not node.running:
                break
            if name in written or daemon.serial(name) is None:
                continue
            told = {'asked': history.now(), 'server': node.server_id, 'zone': name}
            history.add('foreign_rrset', **told, written=False)
            with contextlib.suppress(requests.RequestException):
                name_servers.write_foreign(daemon, name)
                history.add('foreign_rrset', **told, written=True)
                written.append(name)
                some += 1
    if not written:
        raise NotInjected('it takes nothing into a zone')
    yield f'wrote into {", ".join(written)}'
    return len(written)


def lie(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """A server has other contents at the right serial."""
    daemon: Any = trouble.server(target).daemon
    altered = []
    for name in trouble.names():
        with contextlib.suppress(AssertionError, sqlite3.Error):
            daemon.alter(name, '192.0.2.66')
            altered.append(name)
    if not altered:
        raise NotInjected('no zone has an address')
    yield f'altered {", ".join(altered[:5])}'
    return len(altered)


def refuse_tsig(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """A server has another secret for the key."""
    daemon = trouble.server(target).daemon
    other = base64.b64encode(b'another' * 5).decode()
    try:
        name = next(name for name in trouble.names() if daemon.serial(name) is not None)
        name_servers.replace_key(daemon, KEY, KEY.secret, other)
    except StopIteration:
        raise NotInjected('it serves no zone') from None
    except _TROUBLED as error:
        raise NotInjected(f'it could not be told: {error}') from None
    refused = False
    try:
        refused = _refuses(daemon, name)
        yield 'BADSIG' if refused else 'it answers'
    finally:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(*_TROUBLED):
                name_servers.replace_key(daemon, KEY, other, KEY.secret)
                break
            # The others lose it when they are started anew.  BIND takes no commands while its clock is wrong.
            if not isinstance(daemon, (Knotd, Named)):
                break
            time.sleep(0.5)
        else:  # one that was started anew has the right secret
            assert not _refuses(daemon, name), f'the secret of {target} could not be taken back within {_PATIENCE} s'
    return int(refused)


def refuse_api_key(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """A server is started anew with another key of its API, and at the end with the right one."""
    node = trouble.server(target)
    daemon: Any = node.daemon
    if not node.running:
        raise NotInjected('it does not run')
    node.stop()
    daemon.replace_api_key('another')
    node.wanted = True
    try:
        yield 'ended'
        refused = name_servers.refuses_api_key(daemon)
    finally:
        node.stop()
        daemon.replace_api_key(daemon.api_key)
        node.wanted = True
    return int(refused)


def _refuses(daemon: Any, name: str) -> bool:
    try:
        daemon.query(name, key=KEY, timeout=2)
    except dns.tsig.PeerBadSignature:
        return True
    except (OSError, dns.exception.DNSException):
        pass
    return False


def freeze(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """The pool is frozen, and unfrozen at the end."""
    try:
        if not trouble.operator.freeze():
            raise NotInjected('no API has said that it is frozen')
        trouble.history.add('freeze', phase='begin')
        yield 'acknowledged'
        trouble.history.add('freeze', phase='end')
    finally:
        trouble.operator.unfreeze()
    return None


def stage(trouble: Trouble, target: str, chance: random.Random) -> Struck:
    """Changes are released in stages, until the end."""
    canary: Any = trouble.server(CANARY)
    try:
        share = chance.choice((40, 60))
        if not trouble.operator.stage(f'canary {canary.daemon.driver}:{canary.endpoint}; {share} %; all'):
            raise NotInjected('no pool manager has read its configuration')
        trouble.history.add('stages', phase='begin', canary=canary.server_id, bake=BAKE)
        yield f'{canary.endpoint} is first'
        trouble.history.add('stages', phase='end')
    finally:
        trouble.operator.stage(None)
    return None


FAULTS: dict[str, Callable[[Trouble, str, random.Random], Struck]] = {each.__name__: each for each in (
    kill, restart, pause, skew_clock, wrong_server_clock, other_concurrency, fill_disk, forbid_writing,
    cut, cut_one_way, lose_packets, disturb_packets, partition_broker, partition_database, isolate_node,
    isolate_clients, answer_late, truncate_transfers, double_messages, delay_messages, keep_messages, lose_commits,
    lose_commit_answers, cut_connections, fail_over, wipe, move, miss_deletions, lose_zones, lie, refuse_tsig,
    write_foreign, refuse_api_key, freeze, stage)}
#: Those that may leave other contents on a server than it was given.
SPOILING = {'lie'}
#: Those after which a server may have less than it has served; others make it slow or silent at most.
EXCUSING = SPOILING | {'kill', 'restart', 'wrong_server_clock', 'fill_disk', 'forbid_writing', 'wipe', 'move',
                       'miss_deletions', 'lose_zones'}
_CLAIM = CLAIM_SECONDS


def kinds(lab: Lab) -> list[FaultKind]:
    """What can be done in a lab, to which of its nodes."""
    servers, services = tuple(lab.server_nodes), tuple(lab.services)
    of = {kind: tuple(name for name in services if name.startswith(kind))
          for kind in ('central', 'manager', 'minidns', 'api')}
    inner = (*of['central'], *of['manager'], *of['minidns'])
    pdns = tuple(name for name, node in lab.server_nodes.items() if isinstance(node.daemon, PowerDns))
    movable = tuple(name for name, node in lab.server_nodes.items() if isinstance(node.daemon, Named | Nsd))
    fed = tuple(name for name, node in lab.server_nodes.items() if node.is_fed)
    keyed = tuple(name for name in lab.keyed if isinstance(lab.server_nodes[name].daemon, Named | Knotd | Nsd))
    backends = (DATABASE, *(node.name for node in lab.broker.nodes))
    links = (*(f'{one}-{other}' for one in of['minidns'] for other in servers),
             *(f'{one}-{other}' for one in of['manager'] for other in servers),
             *(f'{one}-{other}' for one in services for other in backends))
    single = tuple(node.name for each in (lab.database, lab.broker) if not each.is_cluster for node in each.nodes)
    found = [
        FaultKind('kill', (*services, *servers, *single), 'process', 1, 10, 3),
        FaultKind('restart', (*services, *servers, *single), 'process', 0.5, 3),
        FaultKind('pause', (*of['api'], *inner, *servers, *single), 'process', _CLAIM + 1, _CLAIM * 3, 3),
        FaultKind('skew_clock', (*of['api'], *inner), 'clock', 10, 30, 2),
        FaultKind('wrong_server_clock', servers, 'clock', 5, 20),
        FaultKind('other_concurrency', services, 'process', 3, 4, 0.5),
        FaultKind('fill_disk', (*servers, *inner, *single), 'disk', 5, 20),
        FaultKind('forbid_writing', (*servers, *inner), 'disk', 5, 20),
        FaultKind('cut', links, 'link', 5, 20, 2), FaultKind('cut_one_way', links, 'link', 5, 20, 2),
        FaultKind('lose_packets', links, 'link', 5, 20), FaultKind('disturb_packets', links, 'link', 5, 20),
        FaultKind('partition_broker', ('broker',), 'partition', 5, 25),
        FaultKind('partition_database', (DATABASE,), 'partition', 5, 25),
        FaultKind('isolate_clients', of['api'], 'clients', 3, 10),
        FaultKind('answer_late', servers, 'answers', 5, 20), FaultKind(
            'truncate_transfers', tuple(name for name in servers if name not in fed), 'answers', 5, 20),
        FaultKind('double_messages', ('messages',), 'messages', 10, 40),
        FaultKind('delay_messages', ('messages',), 'messages', 5, 20),
        FaultKind('keep_messages', ('messages',), 'messages', 10, 20, 2),
        FaultKind('lose_commits', (DATABASE,), 'commits', 2, 10),
        FaultKind('lose_commit_answers', (DATABASE,), 'commits', 2, 10),
        FaultKind('cut_connections', (DATABASE,), 'commits', 2, 3),
        FaultKind('wipe', servers, 'process', 1, 5), FaultKind('lose_zones', servers, 'contents', 0.5, 1),
        FaultKind('miss_deletions', servers, 'process', 6, 12),
        FaultKind('freeze', ('pool',), 'freeze', 3, 12, 3),
        *_of_clusters(lab)]
    if CANARY in servers:
        found.append(FaultKind('stage', ('pool',), 'stages', 15, 40, 6))
    if movable:
        found.append(FaultKind('move', movable, 'process', 1, 3, 0.5))
    if pdns:
        found.append(FaultKind('lie', pdns, 'contents', 5, 20))
    if keyed:
        found.append(FaultKind('refuse_tsig', keyed, 'key', 5, 15))
    if fed:
        found += [FaultKind('write_foreign', fed, 'contents', 0.5, 1),
                  FaultKind('refuse_api_key', fed, 'process', 5, 15)]
    assert {each.name for each in found} <= FAULTS.keys()
    return found


def _of_clusters(lab: Lab) -> Iterator[FaultKind]:
    """What is done to one node of a cluster at a time."""
    for backend, group in ((lab.database, 'database cluster'), (lab.broker, 'broker cluster')):
        if backend.is_cluster:
            names = tuple(node.name for node in backend.nodes)
            yield FaultKind('kill', names, group, 1, 10, 4, alone=True)
            yield FaultKind('restart', names, group, 0.5, 3, alone=True)
            yield FaultKind('fill_disk', names, group, 5, 15, alone=True)
            yield FaultKind('isolate_node', names, group, 5, 20, alone=True)
            # As long as the services take to leave a RabbitMQ node that stands still with its connections open.
            longest = _CLAIM * 3 if backend is lab.database else 50
            yield FaultKind('pause', names, group, _CLAIM + 1, longest, 2, alone=True)
    if lab.database.can_fail_over:
        yield FaultKind('fail_over', (DATABASE,), 'database cluster', 1, 5, 3, alone=True)
