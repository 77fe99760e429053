"""Values as JSON.  Pure."""
