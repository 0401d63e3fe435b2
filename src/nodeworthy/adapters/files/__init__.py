"""Files that people write and keep: the fleet file and what it is imported from."""
