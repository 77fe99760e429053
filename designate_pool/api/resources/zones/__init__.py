"""Zones, their recordsets, and where each is served."""
