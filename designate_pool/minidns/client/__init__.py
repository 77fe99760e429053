"""NOTIFYs and SOA polls: one loop, one channel per server."""
