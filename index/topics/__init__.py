"""Topic analysis derives tags and a summary from the words of a note and the roles that they have in their sentences."""
