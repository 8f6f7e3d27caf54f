"""Renders one chat template; run as a script of its own, which can be killed, by `model.checkpoint.chat`.

A template comes with a model from anywhere, so it gets a sandbox without attributes that matter, little memory, little
time, no files to write, no network and no children. Reads one JSON object from stdin, writes one to stdout.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import jinja2
import jinja2.debug  # imported lazily otherwise, when files can no longer be opened
import jinja2.ext
import jinja2.sandbox
from jinja2 import nodes

if TYPE_CHECKING:
    from jinja2.parser import Parser

MEMORY_BYTES = 512 << 20
OUTPUT_CHARACTERS = 1 << 20
_FORBIDDEN = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "shutil.")


class GenerationTag(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}`, which marks the assistant's part for training: the body as it is."""

    tags = {"generation"}  # noqa: RUF012 - jinja2's own declaration

    def parse(self, parser: Parser) -> nodes.Node:
        """The body in a scope of its own."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class TemplateRefusal(jinja2.TemplateError):
    """What a template says through `raise_exception`."""


def _raise_exception(message: object) -> NoReturn:
    raise TemplateRefusal(str(message))


def _to_json(value: object, indent: int | None = None, **options: Any) -> str:
    options = {name: option for name, option in options.items() if name in {"separators", "sort_keys"}}
    return json.dumps(value, ensure_ascii=False, indent=indent, **options)  # unlike jinja2's, not escaped for HTML


def _now(pattern: str) -> str:
    return dt.datetime.now().astimezone().strftime(pattern)


def confine(seconds: int) -> None:
    """Limits of this process, where the system has them, and refusal of what a template has no business with."""
    try:
        import resource  # noqa: PLC0415 - POSIX only
    except ImportError:
        resource = None  # type: ignore[assignment]
    if resource is not None:
        for kind, limit in (
            ("RLIMIT_AS", MEMORY_BYTES),
            ("RLIMIT_CPU", seconds),
            ("RLIMIT_FSIZE", 0),
            ("RLIMIT_CORE", 0),
        ):
            try:
                resource.setrlimit(getattr(resource, kind), (limit, limit))
            except (AttributeError, ValueError, OSError):
                continue  # a system without this limit: the parent's clock remains

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if event.startswith(_FORBIDDEN) or (
            event == "open" and len(arguments) > 1 and arguments[1] not in {None, "r", "rb"}
        ):
            raise PermissionError(f"{event} is not allowed in a chat template")

    sys.addaudithook(audit)


def render(request: dict[str, Any]) -> str:
    """The text of a template with its variables; RuntimeError when it is longer than the limit."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals |= {"raise_exception": _raise_exception, "strftime_now": _now}
    parts, length = [], 0
    for part in environment.from_string(request["template"]).generate(**request["variables"]):
        length += len(part)
        if length > OUTPUT_CHARACTERS:
            raise RuntimeError(f"it writes more than {OUTPUT_CHARACTERS} characters")
        parts.append(part)
    return "".join(parts)


def main() -> None:
    """One request, one reply."""
    request = json.load(sys.stdin)
    confine(int(request["cpu_seconds"]))
    try:
        reply = {"text": render(request)}
    except jinja2.TemplateSyntaxError as error:
        reply = {"error": f"line {error.lineno}: {error.message}"}
    except MemoryError:
        reply = {"error": "it needs too much memory"}
    except RecursionError:
        reply = {"error": "it calls itself without end"}
    except Exception as error:  # noqa: BLE001 - whatever a template does is its own, and goes into the reply
        reply = {"error": f"{type(error).__name__}: {error}" if not isinstance(error, TemplateRefusal) else str(error)}
    json.dump(reply, sys.stdout)


if __name__ == "__main__":
    main()
