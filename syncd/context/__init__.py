"""The context of a workspace is a note with the facts that its agents get at the start of a session; this package chooses them, writes the note and keeps what the owner decides in it."""
