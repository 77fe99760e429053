"""Targets of plans: PowerDNS, DNS UPDATE (RFC 2136), pools of ours, YAML files.  They read zones and apply changes."""
