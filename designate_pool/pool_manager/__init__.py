"""Keeps the servers of a pool in step with the database: a row for each domain and server says what is due."""
