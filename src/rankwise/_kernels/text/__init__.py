"""Text and bytes: LETOR lines, decimal numbers, and rows as text."""
