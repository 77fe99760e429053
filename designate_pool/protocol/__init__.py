"""DNS on the wire and as text: names, messages, TSIG, transfers, zone files.

Imports values, ``deadline`` and ``backoff`` only, and does no I/O but in ``tcp_client`` and ``soa_exchange``.
"""
