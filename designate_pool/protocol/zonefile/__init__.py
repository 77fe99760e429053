"""Zone files (RFC 1035 section 5)."""
