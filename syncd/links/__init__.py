"""Pure functions find the file that an Obsidian link leads to, and rewrite links after files have moved."""
