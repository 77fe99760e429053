"""What is read to be shown or counted, and the removal of what nobody needs any more."""
