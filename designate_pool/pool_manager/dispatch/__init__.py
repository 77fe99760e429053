"""One worker per server: its queues, its limits, its driver's calls and what came of them."""
