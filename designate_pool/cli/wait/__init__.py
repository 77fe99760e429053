"""Waiting until a change is served."""
