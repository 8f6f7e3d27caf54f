"""Encodes text with a tokenizer whose patterns nobody vouches for; run as a script, killed when it takes too long.

First line of stdin: the tokenizer.json. Then one JSON object a line in ({"text", "special"}) and one out ({"ids",
"offsets"} or {"error"}), until stdin ends.
"""

from __future__ import annotations

import json
import sys

import tokenizers

MEMORY_BYTES = 4 << 30


def confine() -> None:
    """A limit on memory, where the system has one."""
    try:
        import resource  # noqa: PLC0415 - POSIX only

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    except (ImportError, ValueError, OSError):
        return


def main() -> None:
    """Answers until there is nothing more to read."""
    confine()
    tokenizer = tokenizers.Tokenizer.from_str(json.loads(sys.stdin.readline()))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            encoding = tokenizer.encode(request["text"], add_special_tokens=request["special"])
            reply = {"ids": encoding.ids, "offsets": encoding.offsets}
        except BaseException as error:  # noqa: BLE001 - Rust's PanicException is no Exception
            reply = {"error": (str(error).splitlines() or [type(error).__name__])[0]}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
