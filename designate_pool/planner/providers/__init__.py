"""Where zones come from and go to: sources, processors, providers.

Own classes are written over these; their path is this package.
"""

from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource, ServerProvider

__all__ = ['BaseProcessor', 'BaseProvider', 'BaseSource', 'ServerProvider']
