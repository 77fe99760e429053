"""Holds packets back, doubles them and lets them overtake each other: what netem does in kernels that have it.

Packets are read from a TUN device and written back to it; which come here, the routing decides.
"""

from __future__ import annotations

import dataclasses
import fcntl
import heapq
import ipaddress
import itertools
import os
import random
import select
import struct
import subprocess
import threading
import time
from collections.abc import Iterator

from testing.processes import binary

_TUNSETIFF = 0x400454ca
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
#: Packets that are held back at once; what comes beyond is lost, as in a full queue of a router.
_MOST = 20000
_LONGEST = 65536


@dataclasses.dataclass(frozen=True, slots=True)
class Disturbance:
    """
    :ivar delay: seconds that every packet is held back
    :ivar jitter: seconds more, at random for each, so that packets overtake each other
    :ivar doubled: the share of packets that come twice
    """

    delay: float = 0.0
    jitter: float = 0.0
    doubled: float = 0.0

    def due(self, chance: random.Random) -> Iterator[float]:
        """After how many seconds each copy of a packet goes on."""
        for _ in range(2 if chance.random() < self.doubled else 1):
            yield self.delay + chance.uniform(0, self.jitter)


@dataclasses.dataclass(slots=True)
class Met:
    """
    :ivar disturbed: packets so far
    """

    disturbance: Disturbance
    disturbed: int = 0


class Relay:
    """
    :ivar interface: of the TUN device
    """

    interface = 'relay0'

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)
        self._pairs: dict[tuple[bytes, ...], Met] = {}
        self._device = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self._device, _TUNSETIFF, struct.pack('16sH', self.interface.encode(), _IFF_TUN | _IFF_NO_PI))
        subprocess.run([binary('ip'), 'link', 'set', self.interface, 'up'], check=True, timeout=60)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._pass_on, name='relay', daemon=True)
        self._thread.start()

    def disturb(self, source: str, target: str, disturbance: Disturbance) -> Met:
        """Do this to packets between two networks of 256 addresses from now on."""
        met = self._pairs[_key(source, target)] = Met(disturbance)
        return met

    def leave(self, source: str, target: str) -> None:
        """Pass on packets between two networks as they come."""
        del self._pairs[_key(source, target)]

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        os.close(self._device)

    def _pass_on(self) -> None:
        held: list[tuple[float, int, bytes]] = []
        order = itertools.count()
        while not self._over.is_set():
            wait = min(0.2, max(0.0, held[0][0] - time.monotonic())) if held else 0.2
            if select.select([self._device], [], [], wait)[0]:
                packet = os.read(self._device, _LONGEST)
                met = self._pairs.get((packet[12:15], packet[16:19]))
                if packet[0] >> 4 == 4 and len(held) < _MOST:
                    now = time.monotonic()
                    for seconds in met.disturbance.due(self._chance) if met else (0.0,):
                        heapq.heappush(held, (now + seconds, next(order), packet))
                    if met:
                        met.disturbed += 1
            while held and held[0][0] <= time.monotonic():
                os.write(self._device, heapq.heappop(held)[2])


def _key(source: str, target: str) -> tuple[bytes, ...]:
    return tuple(ipaddress.ip_network(each).network_address.packed[:3] for each in (source, target))
