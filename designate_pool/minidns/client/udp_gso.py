"""UDP generic segmentation offload: many datagrams of one length in one system call.

Linux takes them as one buffer and segments it into datagrams itself (UDP_SEGMENT, udp(7)), at a fraction of the cost of
single sends (``python -m benchmarks.poll``).  Where the system or the network device does not support it, they are sent
one by one.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Sequence
from typing import Any

#: Datagrams that the system takes in one call.
MAX_SEGMENTS = 64

_UDP_SEGMENT = 103
_SIZE = struct.Struct('=H')
#: Errors of a system that could send single datagrams but cannot segment: the device computes no checksums, or the path
#: has a smaller MTU.
_NO_SEGMENTATION = {errno.EIO, errno.EINVAL, errno.EMSGSIZE, errno.ENOPROTOOPT, errno.EOPNOTSUPP}


class UdpGso:
    """Sends batches on a non-blocking UDP socket.

    :param address: the destination; None for a connected socket
    :ivar can_segment: whether the system segments; False after the first failure
    """

    def __init__(self, sock: Any, address: tuple[str, int] | None = None) -> None:
        self._sock = sock
        self._to = () if address is None else (0, address)
        self.can_segment = _supports_segmentation(sock)

    def send(self, messages: Sequence[bytes]) -> int:
        """Send *messages*, at least one and all of one length; how many of them, from the first, were sent.

        :raises OSError: when none was sent, unless the socket's buffer was full (then 0 is returned)
        """
        batch = messages[:MAX_SEGMENTS]
        sent = 0
        try:
            if len(batch) > 1 and self.send_segmented(batch):
                return len(batch)
            for message in messages:
                self._sock.send(message)
                sent += 1
        except BlockingIOError:
            pass
        except OSError:
            if not sent:
                raise
        return sent

    def send_segmented(self, messages: Sequence[bytes]) -> bool:
        """Send *messages*, 2 to :data:`MAX_SEGMENTS` and all of one length, in one call; False when that is impossible.

        :raises OSError: when none was sent
        """
        if not self.can_segment:
            return False
        size = socket.IPPROTO_UDP, _UDP_SEGMENT, _SIZE.pack(len(messages[0]))
        try:
            self._sock.sendmsg(messages, (size,), *self._to)
        except OSError as error:
            if error.errno not in _NO_SEGMENTATION:
                raise
            self.can_segment = False
        return self.can_segment


def _supports_segmentation(sock: Any) -> bool:
    """Ask first, because a system without the option would send the whole buffer as one datagram."""
    try:
        sock.getsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT)
    except OSError:
        return False
    return True
