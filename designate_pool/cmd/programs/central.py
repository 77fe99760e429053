"""``designate-pool-central``: owns domains and records."""

import functools
import sys

from designate_pool.cmd.compose import concurrency

main = functools.partial(concurrency.run, ('central',))

if __name__ == '__main__':
    sys.exit(main())
