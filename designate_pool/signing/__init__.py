"""Signed zones (DNSSEC): keys and their states, the chain of names, signatures, and their verification.

All of it computes with values: what is in the zone, which keys there are and what time it is, callers say.
"""
