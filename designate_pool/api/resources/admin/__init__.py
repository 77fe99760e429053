"""Keys, quotas, limits, health."""
