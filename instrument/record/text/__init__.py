"""The PTX of a recorded kernel, the words that it stores, and the templates that say what they mean."""
