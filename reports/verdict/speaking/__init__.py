"""Which of several findings speaks: relations between them as data, and what reads them."""
