"""What the pages of the book need."""
