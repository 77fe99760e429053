"""``designate-pool-minidns``: serves transfers, sends NOTIFY, polls serials."""

import functools
import sys

from designate_pool.cmd.compose import concurrency

main = functools.partial(concurrency.run, ('minidns',))

if __name__ == '__main__':
    sys.exit(main())
