"""``designate-pool-manage`` and its checks."""
