"""What the system is measured with: each benchmark is a module, run as ``python -m benchmarks.NAME [--json FILE]``.

A benchmark starts what it needs, measures the system and something to compare it with in the same run, prints
tables, and ends all that it started.  See :mod:`benchmarks.report` for the form of the results.
"""

import warnings

# oslo.messaging imports eventlet, whether the clients here use it or not.
warnings.filterwarnings('ignore', message='\nEventlet is deprecated')
