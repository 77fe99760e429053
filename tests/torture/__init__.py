"""The torture kit: the whole system under faults, and a checker that judges by what clients and servers answered."""
