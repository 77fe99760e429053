"""Servers, brokers, databases and our own programs as processes, and what is put into them: for tests and benchmarks.

Nothing in here knows pytest, and no module of the product imports it.
"""
