"""Pure functions split text into chunks, sentences and words, derive tags, key terms and summaries without a language model, and find hidden characters and code that a plugin of Obsidian may run."""
