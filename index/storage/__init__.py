"""The chunk store writes, reads, repairs and maintains the text chunks and vectors of one index in LanceDB."""
