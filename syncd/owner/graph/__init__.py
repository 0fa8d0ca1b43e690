"""Owner operations on the graph read and change entities and relations, report on them, and import or export them as JSON."""
