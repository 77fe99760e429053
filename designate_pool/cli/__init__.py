"""The operators' command, ``designate-pool``: HTTP to the API, one file per noun."""
