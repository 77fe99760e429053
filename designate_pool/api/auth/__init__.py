"""Who asks, for which project, and whether the policy allows it."""
