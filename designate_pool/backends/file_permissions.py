"""Whether a file or socket that lets its reader command a server is open to everybody."""

from __future__ import annotations

import os
import shlex
import stat

from designate_pool.model import Finding


def check(option: str, path: str) -> Finding | None:
    """What is wrong with the permissions of *path*, which *option* names; None when nothing is.

    A file that others than its owner and group can read or change is too open, and so is a socket that they can use.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return Finding(f'{option}: {path} cannot be looked at: {error.strerror}',
                       'correct the path, or let the user that the pool manager runs as get there')
    if stat.S_ISSOCK(mode):
        wrong, can = mode & stat.S_IWOTH, 'command the server through it'
    else:
        wrong, can = mode & (stat.S_IROTH | stat.S_IWOTH), 'read or change it'
    if not wrong:
        return None
    return Finding(f'{option}: every user of this host can {can}: {path} has mode {stat.S_IMODE(mode):04o}',
                   f'chmod o= {shlex.quote(path)}', serious=False)
