"""Queries in, answers out: the listening sockets, and what is answered to whom."""
