"""What a user asks: one prediction, several, groups of records, causes, plans, sensitivity."""
