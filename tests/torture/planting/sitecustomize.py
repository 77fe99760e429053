"""Run by Python at its start where this folder is on PYTHONPATH: plants the bug that the environment names."""

from __future__ import annotations

import importlib.util
import pathlib

_spec = importlib.util.spec_from_file_location('planted', pathlib.Path(__file__).resolve().parent.parent / 'planted.py')
assert _spec is not None and _spec.loader is not None
_planted = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_planted)
_planted.install()
