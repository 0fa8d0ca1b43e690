"""Pure functions select the parts of documents that fit into the size limit of an answer."""
