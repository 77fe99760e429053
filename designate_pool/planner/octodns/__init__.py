"""Adapters that run octoDNS's sources, providers and processors in the planner."""
