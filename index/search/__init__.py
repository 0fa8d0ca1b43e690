"""Search finds chunks by words and by vectors, fuses both rankings into one list of documents and reranks it."""
