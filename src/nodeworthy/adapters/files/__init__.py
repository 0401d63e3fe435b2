"""Files that belong to a site or to the package: the catalogue, the fleet, log rules, settings."""
