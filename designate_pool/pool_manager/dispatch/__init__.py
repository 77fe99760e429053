"""The workers, one for each server: their queues and limits, what they do on it, and the results."""
