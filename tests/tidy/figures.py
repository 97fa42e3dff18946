"""How large the package is: what the rules of the house bound, in figures.

    python -m tidy.figures
"""

from __future__ import annotations

import sys

from tidy import rules


def main() -> None:
    """Print them."""
    sources = [*rules.modules()]
    lines = {module: len(source.splitlines()) for module, source in sources}
    functions: dict[str, int] = {}
    for module, source in sources:
        functions |= rules.functions(module, source)
    file, function = max(lines, key=lines.__getitem__), max(functions, key=functions.__getitem__)
    sys.stdout.write(f"{sum(lines.values()):,} lines in {len(lines)} files of the package; the longest file has"
                     f" {lines[file]} ({file}), the longest function {functions[function]} ({function})\n")
    for room in sorted(rules.ROOMS_OF_WINGS):
        arrows = rules.arrows(room, sources)
        sys.stdout.write(f"{room}: {len(arrows)} parts at its top, on {len(rules.floors(arrows))} floors\n")


if __name__ == "__main__":
    main()
