"""The guard authenticates each request and limits its rate before any route sees it."""
