"""``designate-pool-sink``: makes records for instances and floating IPs, from the notifications of Nova and Neutron."""

import functools
import sys

from designate_pool.cmd.compose import concurrency

main = functools.partial(concurrency.run, ('sink',))

if __name__ == '__main__':
    sys.exit(main())
