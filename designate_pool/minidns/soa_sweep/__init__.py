"""Queries the serials of many zones from many servers, for audits."""
