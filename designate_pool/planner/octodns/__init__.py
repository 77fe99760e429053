"""octoDNS's sources, providers and processors as ours."""
