"""Four tool families (thoughts, kb, memory, graph) define the description, schema, call and answer of each tool."""
