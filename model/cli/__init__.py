"""The command line: one file a subcommand, a line here registers it. Nothing here imports torch before it works."""

from model.cli import bench, engine, models, run
from model.cli.command import Command

COMMANDS: tuple[Command, ...] = (run.COMMAND, models.COMMAND, engine.COMMAND, bench.COMMAND)
