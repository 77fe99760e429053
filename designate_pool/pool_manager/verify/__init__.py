"""What servers really hold against what they should hold, and how that is repaired."""
