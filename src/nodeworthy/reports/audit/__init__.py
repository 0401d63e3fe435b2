"""The audit: what a fleet lost, to what, who is out and why, from accounting records alone. See `report.build`."""
