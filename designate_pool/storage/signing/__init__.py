"""Signed zones (DNSSEC): what the signer made of them, their keys, and how far their signing has come."""
