# SPDX-License-Identifier: MIT OR GPL-2.0
"""Files that are the members of a store, for its tests."""
import os


def make(folder: str) -> list[str]:
    """Two empty members of 1 MiB."""
    paths = [os.path.join(folder, f"member{i}") for i in range(2)]
    for path in paths:
        with open(path, "wb") as file:
            file.truncate(1 << 20)
    return paths
