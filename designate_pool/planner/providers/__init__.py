"""Base classes of sources, processors and providers.  Custom classes import them from this package."""

from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource, ServerProvider

__all__ = ['BaseProcessor', 'BaseProvider', 'BaseSource', 'ServerProvider']
