"""DNS on the wire and as text: names, messages, TSIG, transfers, zone files.

It imports values, ``deadline`` and ``backoff`` only.  ``tcp_client``, ``soa_exchange``, and ``receive``
and ``take`` of ``axfr_inbound`` do I/O; the rest does none.
"""
