"""Graph operations create, change and delete the entities of a workspace and their relations, and report on the graph."""
