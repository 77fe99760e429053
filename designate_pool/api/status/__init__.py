"""The status pages for browsers: which server serves what.  They need no script and nothing from other sites."""
