"""Zones that are kept in files: plan, apply, dump, compare."""
