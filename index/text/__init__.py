"""Pure functions split text into chunks, sentences and words, and derive tags, key terms and summaries without a language model."""
