"""The status pages: what is served where, for a browser.  They need no script, and nothing from any other host."""
