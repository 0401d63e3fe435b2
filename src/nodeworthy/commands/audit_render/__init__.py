"""An audit for people: the same sections on the terminal, in Markdown and in HTML. `sections` has the words."""
