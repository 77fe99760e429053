"""Has one of our programs forked by ``testing/warm.py``, in the namespaces of whoever executes this.

It is executed by the name of the program, in a folder on the PATH; FORKS is the number of an inherited descriptor, the
socket of :func:`testing.warm.parent`.  It imports next to nothing, or it would take as long as the program.
"""

import json
import os
import socket
import sys

program = os.path.join(os.path.dirname(sys.executable), os.path.basename(sys.argv[0]))
if 'PYTHONPATH' in os.environ:  # read when Python starts
    os.execv(program, sys.argv)
reader, writer = os.pipe()
asked = json.dumps({'words': [program, *sys.argv[1:]], 'folder': os.getcwd(), 'environment': dict(os.environ)})
spaces = [os.open(f'/proc/self/ns/{kind}', os.O_RDONLY) for kind in ('net', 'mnt', 'pid')]
socket.send_fds(socket.socket(fileno=int(os.environ['FORKS'])), [asked.encode()], [0, 1, 2, writer, *spaces])
os.close(writer)
_, code = os.fdopen(reader).read().split()
sys.exit(int(code))
