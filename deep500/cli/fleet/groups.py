"""Commands that hold commands."""

from __future__ import annotations

import typer

__all__ = ["new_group"]


def new_group(about: str, examples: str) -> typer.Typer:
    """Return a group of commands that shows its help when none of them is named.

    Args:
        about: What the group is for, in one sentence.
        examples: The end of its help.
    """
    group = typer.Typer(
        rich_markup_mode=None,
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )

    @group.callback(help=about, epilog=examples)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    return group
