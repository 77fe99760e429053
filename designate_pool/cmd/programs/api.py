"""``designate-pool-api``: HTTP for users."""

import functools
import sys

from designate_pool.cmd.compose import concurrency

main = functools.partial(concurrency.run, ('api',))

if __name__ == '__main__':
    sys.exit(main())
