"""Parses requests into values; an error names the field."""
