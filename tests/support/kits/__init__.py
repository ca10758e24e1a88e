"""Kits: how the contract of adapters plays an agent in each framework."""
