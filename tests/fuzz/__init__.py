"""Input from outside for all that reads it: found by coverage (``make fuzz``), kept in a corpus for every test run.

An input that broke something stays in ``corpus/TARGET``, so that it is tried again for ever.
"""
