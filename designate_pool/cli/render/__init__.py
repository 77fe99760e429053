"""What commands show: tables, text, progress."""
