"""The workers, one for each server: their queues, limits, driver calls, and the results."""
