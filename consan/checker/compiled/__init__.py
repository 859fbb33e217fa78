"""The compiled checker: its library, the records that it takes and gives, and its calls."""
