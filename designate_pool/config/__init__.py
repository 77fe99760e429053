"""Configuration: every oslo.config option, and the file's contents as plain frozen values.

``cmd`` calls :func:`designate_pool.config.load.load`, then :func:`~designate_pool.config.load.read_settings` and
:func:`~designate_pool.config.pools.read_pool`, and hands the values down; nothing below ``cmd`` sees a ``conf``.
"""
