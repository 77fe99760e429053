"""What the pool manager keeps: rows per server, servers, sweeps, heartbeats, ownership."""
