"""The programs: each patches, reads its configuration, builds its services and serves until SIGTERM."""
