"""Who may ask: the pool's servers, by address or TSIG key, and keys given out over the API."""
