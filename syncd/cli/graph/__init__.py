"""Graph commands show, change, import and export the entities and relations of a workspace."""
