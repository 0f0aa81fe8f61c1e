"""Renders reports: `page` says what there is to read, `markdown`, `html` and `text` lay it out; others are data.

Names, messages and values come from programs, clouds and other people. `words.safe` makes them plain text; each
renderer keeps them from being markup: code spans in Markdown, entities in HTML.
"""
