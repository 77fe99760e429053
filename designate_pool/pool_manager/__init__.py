"""Keeps the servers of a pool in step with the database: a row for each domain and server says what is due.

From the lowest layer: ``settings``, ``dispatch``, ``reconcile``, ``manager``, ``verify`` and ``server_registry``,
``periodic``, ``service``.
"""
