"""The catalogue: words for each kind of finding and each of its situations, as rows."""
