"""From records to labelled units."""
