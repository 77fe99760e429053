"""Signed zones: their changes are signed as they are written, and their keys live and are rolled."""
