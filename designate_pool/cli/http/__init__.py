"""The API over HTTP, and which API it is."""
