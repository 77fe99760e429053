"""``designate-pool-api``: HTTP for users."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from designate_pool.cmd import boot


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    runtime = boot.prepare(argv)
    from designate_pool.cmd import program

    return program.run(runtime, argv, ('api',))


if __name__ == '__main__':
    sys.exit(main())
