"""How programs are put together from configuration, services and runtime."""
