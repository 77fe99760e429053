"""Owns domains, recordsets and pools: rules, transactions, and the casts that follow a change."""
