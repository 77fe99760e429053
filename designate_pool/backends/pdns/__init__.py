"""PowerDNS Authoritative as a secondary, by its HTTP API."""
