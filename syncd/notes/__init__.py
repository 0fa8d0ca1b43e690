"""Pure functions parse and edit the text of one note: front matter, outline, lists, inline fields, tags and checkboxes."""
