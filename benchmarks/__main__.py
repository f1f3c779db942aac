"""`python -m benchmarks [NAME ...]`: run the measurements, all of them or those that are named.

Owns: the list of measurements. Does not own: any of them; each is a module with a `main()` that
prints JSON, and takes options of its own when it is run by itself.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys

import benchmarks


def measurements() -> dict[str, str]:
    """Return the name of every measurement with the first line of what it says about itself."""
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if not module.name.startswith("_"):
            text = importlib.import_module(f"benchmarks.{module.name}").__doc__ or ""
            found[module.name] = text.partition("\n")[0]
    return found


def main() -> int:
    """Run what is asked for; return the exit status."""
    known = measurements()
    listing = "\n".join(f"  {name:<24} {line}" for name, line in known.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the figures that the project states.",
        epilog=f"measurements:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="measurements; default: all")
    names = parser.parse_args().names or list(known)
    unknown = sorted(set(names) - set(known))
    if unknown:
        parser.error(f"no measurement is called {', '.join(unknown)}")
    status = 0
    for name in names:
        print(f"# {name}: {known[name]}", file=sys.stderr)
        sys.argv = [f"benchmarks.{name}"]
        status = importlib.import_module(f"benchmarks.{name}").main() or status
    return status


if __name__ == "__main__":
    sys.exit(main())
