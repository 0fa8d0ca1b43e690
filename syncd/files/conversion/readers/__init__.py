"""Each reader extracts the text of one file type as Markdown; readers run only in the conversion child process."""
