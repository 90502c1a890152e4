# SPDX-License-Identifier: GPL-2.0-only
# planted: card.py:5: invalid syntax
def read(list):
	if list:
		return list else None
