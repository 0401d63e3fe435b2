"""Commands that run alone, without a server: loaded by name when they are called, free to use every layer."""
