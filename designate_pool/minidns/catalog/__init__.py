"""The pool's catalog zone (RFC 9432) and the differences between two of its serials."""
