"""The rules for what Central owns: each function is one transaction's work, or pure."""
