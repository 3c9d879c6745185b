"""What operators see of a running bot: its log, its metrics and its health. Nothing here changes anything."""
