"""Model commands list the models for search by meaning, measure models and settings on the owner's notes, and choose a model."""
