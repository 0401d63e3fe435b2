"""The fleet file and the inventories it is imported from, for commands that run alone."""

from nodeworthy.adapters.files.fleet import find_fleet, load_fleet, parse_fleet, read_text
from nodeworthy.adapters.files.fleet_csv import read_csv
from nodeworthy.adapters.files.fleet_write import fleet_text, write_file

__all__ = ["find_fleet", "fleet_text", "load_fleet", "parse_fleet", "read_csv", "read_text", "write_file"]
