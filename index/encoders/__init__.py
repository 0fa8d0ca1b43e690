"""Models that turn text into vectors, and the settings that name one."""
