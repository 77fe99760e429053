"""Storage: the only room that knows SQLAlchemy."""
