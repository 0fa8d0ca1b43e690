"""The scheduler runs recurring jobs, and the worker carries out the durable queue of notes and files to import."""
