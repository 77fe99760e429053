"""Configuration: all options of oslo.config, and the settings as plain frozen values.

``cmd`` calls :func:`designate_pool.config.load.load`, then :func:`~designate_pool.config.load.read_settings` and
:func:`~designate_pool.config.pools.read_pool`, and passes the values on.  Only ``cmd`` handles a ``conf`` object.
"""
