"""A pool of DNS servers of any make, kept in step with one database."""

import os

# eventlet's own copy of dnspython breaks dns.zone and dns.query.  The variable is read when eventlet is
# first imported, which oslo.messaging does by itself, so it is set before anything of ours can import it.
os.environ.setdefault('EVENTLET_NO_GREENDNS', 'yes')

__version__ = '0.1.0'
