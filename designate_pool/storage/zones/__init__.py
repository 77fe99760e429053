"""What users own: domains, recordsets, journals, pools, quotas, keys, plans, tasks."""
