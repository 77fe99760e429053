"""Servers fed by records: what a zone should hold, what it holds, the plan between the two, and its application."""
