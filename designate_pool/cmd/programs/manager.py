"""``designate-pool-manager``: keeps the servers of one pool in step."""

import functools
import sys

from designate_pool.cmd.compose import concurrency

main = functools.partial(concurrency.run, ('pool_manager',))

if __name__ == '__main__':
    sys.exit(main())
