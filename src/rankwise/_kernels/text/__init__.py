"""Kernels for text: LETOR lines to arrays and back, decimal numbers to float64 and back.

`words` looks at eight bytes at a time, `decimal` reads numbers, `letor_lines` and `letor_rows` read LETOR text,
`written` writes it.
"""
