"""Prometheus, VictoriaMetrics and whatever else answers Prometheus' HTTP API."""
