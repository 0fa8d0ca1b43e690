"""The REST layer serves the HTTP routes, their OpenAPI description, form uploads and Git webhooks."""
