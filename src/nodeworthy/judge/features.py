"""Window features."""

FUNCTIONS = ("increase", "rate", "rate_per_minute", "changes", "minimum", "maximum", "mean")
