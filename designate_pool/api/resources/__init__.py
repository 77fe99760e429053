"""What can be asked of the API: a module for each resource."""
