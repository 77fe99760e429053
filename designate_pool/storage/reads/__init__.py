"""What requests read, limited to what their projects may see."""
