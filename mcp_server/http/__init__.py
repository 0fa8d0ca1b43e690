"""HTTP middleware checks host names, limits bodies and headers, answers refusals, and logs and counts each request."""
