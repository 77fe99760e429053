"""Sources of zones: zone files, other servers by AXFR, octoDNS's YAML."""
