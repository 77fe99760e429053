"""Arguments that many commands have."""
