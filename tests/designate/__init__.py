"""The tests that Designate has for its API, unmodified, against ours."""
