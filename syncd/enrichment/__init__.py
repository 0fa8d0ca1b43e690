"""The enricher gives captures a summary and tags, from their own words or from a chat endpoint, at once or in a backfill."""
