"""Statements for status pages, metrics and checks, and the purge."""
