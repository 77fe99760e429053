"""Knot DNS, by its control socket."""
