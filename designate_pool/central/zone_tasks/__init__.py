"""Imports and exports of zone files."""
