"""Pure functions find duplicates, tag synonyms, unused captures and topic groups among the captures of a workspace."""
