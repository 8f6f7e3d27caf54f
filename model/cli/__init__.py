"""The command line: one file a subcommand, a line here registers it. Nothing here imports torch before it works."""

from model.cli import bench, doctor, engine, export, models, record, run
from model.cli.command import Command

COMMANDS: tuple[Command, ...] = (
    run.COMMAND,
    export.COMMAND,
    models.COMMAND,
    record.COMMAND,
    doctor.COMMAND,
    bench.COMMAND,
    engine.COMMAND,
)
