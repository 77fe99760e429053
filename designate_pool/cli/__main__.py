"""``python -m designate_pool.cli``: the command from a checkout that is not installed."""

import sys

from designate_pool.cli.app import main

sys.exit(main())
