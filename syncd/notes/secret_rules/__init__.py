"""Secret rules say what the credentials of known services look like, and whether a value was chosen at random."""
