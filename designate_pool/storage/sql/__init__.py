"""The database itself: connections, transactions, tables, migrations."""
