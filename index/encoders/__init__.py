"""The models that turn text into vectors: the one place where their libraries are imported."""
