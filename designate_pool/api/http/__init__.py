"""The HTTP server, and the middleware around operations."""
