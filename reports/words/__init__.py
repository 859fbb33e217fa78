"""How a finding gets its words: its row of the catalogue, filled in as its framework spells things."""
