"""The Git layer reads the repository's state, the moves of HEAD and the ignore rules, installs Memex's hooks, and commits only when it sets up a vault."""
