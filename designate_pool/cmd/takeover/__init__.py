"""Taking over the zones of OpenStack Designate: ``designate-pool-manage designate``."""
