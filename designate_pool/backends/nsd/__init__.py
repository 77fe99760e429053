"""NSD, by its control channel."""
