"""Intervals from held-out queries, and how many queries a given width takes."""
