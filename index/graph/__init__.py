"""The graph holds the entities of one workspace and their relations in memory, and finds the entity that a name means."""
