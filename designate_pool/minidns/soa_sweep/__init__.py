"""The serials of many zones asked of many servers, for audits."""
