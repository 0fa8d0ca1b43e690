"""Pure functions find duplicates, contradictions, tag synonyms, unused captures and topic groups among the captures of a workspace."""
