"""Requests to values, or an error that names the field."""
