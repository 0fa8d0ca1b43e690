"""The Git layer reads the repository's state, the moves of HEAD and the ignore rules, and installs Memex's hooks; it never commits."""
