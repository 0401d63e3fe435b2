"""Metrics pages in the Prometheus text format, as dcgm-exporter and node_exporter serve them."""
