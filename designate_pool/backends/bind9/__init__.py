"""BIND 9, by rndc and its statistics channel."""
