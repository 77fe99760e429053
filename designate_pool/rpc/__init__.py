"""RPC: the only room that knows oslo.messaging."""
