"""Plans: changes, policy, safety, and plans that are kept for later."""
