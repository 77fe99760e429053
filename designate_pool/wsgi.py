"""The API as a WSGI application: ``designate_pool.wsgi:application``, for uWSGI, gunicorn or Apache with mod_wsgi.

Importing this module starts it: the configuration is read (the file that the variable :data:`CONFIG_FILE` of the
environment names, else the usual one), and Central serves its topic in this process until it ends.  It runs on native
threads, so each process of the server has to import it itself, after it was forked.
"""

from __future__ import annotations

import os

from designate_pool import runtime
from designate_pool.cmd.programs import daemons

CONFIG_FILE = 'DESIGNATE_POOL_CONFIG_FILE'

daemons.silence_eventlet()
from designate_pool.cmd.compose import lifecycle  # noqa: E402

application = lifecycle.make_application(
    runtime.Threads(), ['--config-file', os.environ[CONFIG_FILE]] if CONFIG_FILE in os.environ else [])
