"""Questions about launches that were recorded: do fixes hold, which synchronisation is not needed, how fast are forms."""
