"""What serves several requests together: waits, imports and exports."""
