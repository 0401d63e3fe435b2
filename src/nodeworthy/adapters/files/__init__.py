"""Files that come with the package or that a site writes: read, layered, handed on as plain mappings."""
