"""The four families of tools: words, schemas, calls, answers."""
