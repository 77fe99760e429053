"""Checks the permissions of files and sockets with which a server can be controlled."""

from __future__ import annotations

import os
import shlex
import stat

from designate_pool.model import Finding


def check(option: str, path: str) -> Finding | None:
    """What is wrong with the permissions of *path*, the value of *option*; None when nothing is.

    Users other than its owner and group must not be able to read or write a file, or to connect to a socket.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return Finding(f'{option}: {path} cannot be accessed: {error.strerror}',
                       'correct the path, or give the user that the pool manager runs as access to it')
    if stat.S_ISSOCK(mode):
        wrong, can = mode & stat.S_IWOTH, 'control the server through it'
    else:
        wrong, can = mode & (stat.S_IROTH | stat.S_IWOTH), 'read or write it'
    if not wrong:
        return None
    return Finding(f'{option}: every user of this host can {can}: {path} has mode {stat.S_IMODE(mode):04o}',
                   f'chmod o= {shlex.quote(path)}', serious=False)
