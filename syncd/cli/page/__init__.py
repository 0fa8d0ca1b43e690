"""The command `open` starts the page in a process of its own, and manages its browser sessions."""
