"""Records for instances and floating IPs, from the notifications of Nova and Neutron."""
