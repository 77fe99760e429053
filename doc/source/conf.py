"""Sphinx: how the documentation is built."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / 'ext'), str(HERE.parents[1])]

from designate_pool import __version__  # noqa: E402  (the checkout's own, found by the line above)

project = 'designate-pool'
author = 'the designate-pool authors'
copyright = author
version = release = __version__
extensions = ['oslo_config.sphinxext', 'reno.sphinxext', 'references', 'server_options', 'stories']
# What is to be typed stands in help texts too.
smartquotes = False
html_theme = 'alabaster'
html_show_copyright = False
