"""HTTP in the shape of Designate v2."""
