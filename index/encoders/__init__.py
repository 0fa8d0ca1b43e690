"""Encoders turn text into vectors; the embedder loads the configured encoder in the background and switches to the next one when it fails."""
