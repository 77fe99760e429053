"""Zones of other servers: notifications from their masters, and transfers from these."""
