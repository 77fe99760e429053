"""``designate-pool-all``: every service in one process, without a broker."""

import functools
import sys

from designate_pool.cmd.compose import concurrency

main = functools.partial(concurrency.run, ('central', 'minidns', 'pool_manager', 'api'), embedded=True)

if __name__ == '__main__':
    sys.exit(main())
