"""Serves zones by transfer to the servers of its pool, notifies them, and polls them for their serials."""
