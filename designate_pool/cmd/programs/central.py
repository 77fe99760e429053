"""``designate-pool-central``: owns domains and records."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from designate_pool.cmd.compose import concurrency


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    runtime = concurrency.prepare(argv)
    from designate_pool.cmd.compose import lifecycle

    return lifecycle.run(runtime, argv, ('central',))


if __name__ == '__main__':
    sys.exit(main())
