"""State machines: several programs with their database, network and servers, one step at a time.

``simulation`` has the tasks, the clock and the database, ``servers`` the name servers, ``cluster`` the programs and
what can happen next, ``invariants`` what has to hold, and ``machine`` what hypothesis chooses among.
"""
