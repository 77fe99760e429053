"""Has one of our programs forked by ``testing/warm.py``, in the namespaces of whoever executes this, and waits for it.

It is executed by the name of the program, in a folder on the PATH.  FORKS has the numbers of two inherited descriptors,
the sockets of :func:`testing.warm.parent` for commands and for services.  It imports next to nothing, or it would take
as long as the program.
"""

import json
import os
import signal
import socket
import sys

name = os.path.basename(sys.argv[0])
program = os.path.join(os.path.dirname(sys.executable), name)
if 'FORKS' not in os.environ or 'PYTHONPATH' in os.environ:  # the latter is read when Python starts
    os.execv(program, sys.argv)
reader, writer = os.pipe()
asked = json.dumps({'words': [program, *sys.argv[1:]], 'folder': os.getcwd(), 'environment': dict(os.environ)})
spaces = [os.open(f'/proc/self/ns/{kind}', os.O_RDONLY) for kind in ('net', 'mnt', 'pid')]
of_commands, of_services = map(int, os.environ['FORKS'].split())
parent = of_commands if name in ('designate-pool', 'designate-pool-manage') else of_services
socket.send_fds(socket.socket(fileno=parent), [asked.encode()], [0, 1, 2, writer, *spaces])
os.close(writer)
with os.fdopen(reader) as told:
    pid = int(told.readline())
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os.kill(pid, number))
    sys.exit(int(told.readline()))
