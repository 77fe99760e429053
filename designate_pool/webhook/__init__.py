"""The pool as a provider for external-dns, over external-dns's webhook interface."""
