"""Upload sessions receive files from agents in chunks, or from the command line, and hand each complete file to the queue."""
