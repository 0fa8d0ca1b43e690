"""The document parser turns the bytes of a file into a document; this package defines the format of every kind of note and is pure."""
