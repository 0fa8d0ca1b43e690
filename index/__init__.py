"""The search index turns parsed notes into ranked answers; the modules directly in this package hold the types, errors and ids that all parts of it share."""
