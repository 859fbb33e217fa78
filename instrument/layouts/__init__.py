"""Records that Python and C++ share. A table gives their fields; NumPy dtypes, C++ structures and assertions follow from it."""
