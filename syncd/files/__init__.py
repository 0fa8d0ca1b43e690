"""File import stores uploaded files, finds files dropped into the inbox, and writes a searchable note for each of them."""
