"""Pools, their servers, and what is planned and found on them."""
