"""``skuld completion``: what a shell must be told once so that Tab completes verbs, options and their values.

The script asks ``skuld`` itself at each Tab, so it never grows old; a verb's help is loaded for it, and nothing
heavy. Nodes are not asked: a Tab that waits for a cluster is worse than none.
"""

from __future__ import annotations

import click

from skuld_py.cli.options import json_option

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the script that makes SHELL complete the verbs and options of skuld.

    \b
    Examples:
      eval "$(skuld completion bash)"                                  # in ~/.bashrc
      eval "$(skuld completion zsh)"                                   # in ~/.zshrc
      skuld completion fish > ~/.config/fish/completions/skuld.fish
    """
    from click.shell_completion import get_completion_class

    from skuld_py.cli.showing import print_json

    kind = get_completion_class(shell)
    assert kind is not None, shell
    script = kind(ctx.find_root().command, {}, "skuld", "_SKULD_COMPLETE").source()
    print_json({"shell": shell, "script": script}) if as_json else click.echo(script)
