"""Calls and messages between the services; the only package that imports oslo.messaging."""
