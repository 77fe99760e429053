"""A small secondary name server with scripted faults: for demonstrations and rehearsals, never for production."""
