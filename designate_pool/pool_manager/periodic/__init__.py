"""What the pool manager does unasked: due rows, audits, joining and draining servers, gauges."""
