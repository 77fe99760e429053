"""Sending many datagrams of one length in one system call, and one walk through the network stack.

Linux takes them as one buffer and cuts it into datagrams itself (UDP_SEGMENT, udp(7)), which costs it a fraction of
what as many single ones do.  Where the system does not know this, or the network device refuses, they go one by one.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Sequence
from typing import Any

#: Datagrams that the system takes in one go.
MOST = 64

_UDP_SEGMENT = 103
_SIZE = struct.Struct('=H')
#: What the system says where it could send each of the datagrams, but cannot cut: the device computes no checksums, or
#: the path takes only smaller ones.
_CANNOT_CUT = {errno.EIO, errno.EINVAL, errno.EMSGSIZE, errno.ENOPROTOOPT, errno.EOPNOTSUPP}


class UdpGso:
    """Sends on a UDP socket that does not block.

    :param address: where to; None for a socket that is connected
    :ivar can_cut: whether more than one at a time can be sent
    """

    def __init__(self, sock: Any, address: tuple[str, int] | None = None) -> None:
        self._sock = sock
        self._to = () if address is None else (0, address)
        self.can_cut = _knows_segments(sock)

    def send(self, messages: Sequence[bytes]) -> int:
        """Send *messages*, at least one and all of one length; how many of them, from the first, have gone out.

        :raises OSError: when none has, but for want of room in the socket's buffer
        """
        some = messages[:MOST]
        try:
            if len(some) > 1 and self.cut(some):
                return len(some)
        except BlockingIOError:
            return 0
        return self._one_by_one(messages)

    def cut(self, messages: Sequence[bytes]) -> bool:
        """Send *messages*, 2 to :data:`MOST` and all of one length, in one go; False when the system cannot do that.

        :raises OSError: when none has gone out
        """
        if not self.can_cut:
            return False
        size = socket.IPPROTO_UDP, _UDP_SEGMENT, _SIZE.pack(len(messages[0]))
        try:
            self._sock.sendmsg(messages, (size,), *self._to)
        except OSError as error:
            if error.errno not in _CANNOT_CUT:
                raise
            self.can_cut = False
        return self.can_cut

    def _one_by_one(self, messages: Sequence[bytes]) -> int:
        sent = 0
        try:
            for message in messages:
                self._sock.send(message)
                sent += 1
        except BlockingIOError:
            pass
        except OSError:
            if not sent:
                raise
        return sent


def _knows_segments(sock: Any) -> bool:
    """Asked for, because a system that does not know it sends the whole buffer as one datagram."""
    try:
        sock.getsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT)
    except OSError:
        return False
    return True
