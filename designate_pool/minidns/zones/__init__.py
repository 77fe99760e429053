"""From storage to the messages of a transfer: loaded once per serial, packed once, cached."""
