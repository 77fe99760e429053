"""What zones can be read from: zone files, other servers by transfer, octoDNS's YAML."""
