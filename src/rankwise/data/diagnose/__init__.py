"""What is wrong with judged queries, found before anything is learned from them."""
