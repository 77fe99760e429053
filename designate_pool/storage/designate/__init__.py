"""The database of OpenStack Designate 23, which is only read, and copies of its rows in ours."""
