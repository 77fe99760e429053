"""Zones and recordsets."""
