"""The observation store embeds each fact of an entity under several prompts, called perspectives, and searches the facts under all of them."""
