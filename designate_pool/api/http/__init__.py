"""The HTTP server, and what a request passes before and after its operation."""
