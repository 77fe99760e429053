"""RPC and notifications: the messages between the services.  Only this package imports oslo.messaging."""
