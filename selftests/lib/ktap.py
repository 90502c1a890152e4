# SPDX-License-Identifier: GPL-2.0-only
"""Results of the programs in Python."""


class Results:
	"""KTAP, each line at once."""

	def __init__(self):
		self.number = self.failed = 0
		print("TAP version 13", flush=True)

	def report(self, name, good):
		self.number += 1
		self.failed += not good
		print(f"{'ok' if good else 'not ok'} {self.number} {name}", flush=True)

	def end(self):
		print(f"1..{self.number}")
		return self.failed != 0
