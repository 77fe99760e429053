"""Which rows a domain has, what is due in each, and what its servers agree on."""
