"""Oracles: policies that are told what nobody can know, and exact prices in small cases."""
