"""Pools, servers, and the pool's state."""
