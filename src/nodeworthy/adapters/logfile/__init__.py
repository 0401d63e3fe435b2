"""Log files as an event log: a local file, or the central file of a syslog server with the lines of many hosts."""

from nodeworthy.adapters.logfile.tail import LogFile

__all__ = ["LogFile"]
