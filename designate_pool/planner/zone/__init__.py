"""Zones as the planner has them: RRsets, and the changes between two contents."""
