"""Changes are what agents propose for shared notes; this package makes their diffs, merges them with the notes of now, and plans what the owner's approval does."""
