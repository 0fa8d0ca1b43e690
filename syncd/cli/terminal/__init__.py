"""Terminal renderers format results as text for people, and are pure."""
