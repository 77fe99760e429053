"""The file of a sync: YAML with the keys of octoDNS."""
