"""``skuld gateway``: the verbs over HTTP; and ``skuld token``, which makes what its callers show.

The gateway keeps nothing: any number may run, anywhere that nodes can be reached from.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from skuld_py.cli.logs import log_options
from skuld_py.cli.options import addresses_of, json_option, metrics_option, nodes_option, timeout_option
from skuld_py.cli.values import DURATION, Duration

ROLES = ("worker", "producer", "reader", "archiver", "admin")
SCOPES = ("enqueue", "work", "read", "admin")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--host", default="127.0.0.1",
              help="The address to listen at; others than loopback need --tokens and --certificate.")
@click.option("--port", type=click.IntRange(0, 65_535), default=13080, help="The port to listen at; 0 picks one.")
@click.option("--tokens", type=_FILE, default=None, show_default="none, anybody may do everything",
              help="The file of those who may ask, as 'skuld token' makes its entries.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME",
              help="A further name by which requests may name this gateway; may be given several times.")
@click.option("--certificate", type=_FILE, default=None, help="Speak TLS, with this chain of certificates (PEM).")
@click.option("--key", type=_FILE, default=None, help="The certificate's private key (PEM).")
@click.option("--behind-proxy", "is_behind_proxy", is_flag=True,
              help="Let --host be any address without --certificate: something in front ends TLS.")
@click.option("--body", "body_mib", type=click.IntRange(1, 64), default=8, help="The largest body, in MiB.")
@click.option("--requests", type=click.IntRange(1, 10_000), default=256,
              help="How many requests at once; half of them for one caller.")
@click.option("--waiting", type=click.IntRange(1, 10_000), default=192,
              help="How many claims may wait, and readers follow a log, at once; half of them for one caller.")
@click.option("--wait", "wait_s", type=DURATION, metavar="DURATION", default="30s",
              help="How long one request may wait for a task, or follow a log.")
@nodes_option
@timeout_option()
@metrics_option
@log_options
@json_option
def gateway(host: str, port: int, tokens: Path | None, hosts: tuple[str, ...], certificate: Path | None,
            key: Path | None, is_behind_proxy: bool, body_mib: int, requests: int, waiting: int,
            wait_s: float, nodes: str, timeout_s: float, metrics: str | None, log_level: str,
            log_format: str | None, as_json: bool) -> None:
    """Serve the verbs over HTTP until SIGTERM or Ctrl-C.

    It says "gateway http://HOST:PORT is ready" once it takes requests. Its OpenAPI document is at /openapi.json,
    and a dashboard for browsers at /dashboard.
    SIGHUP has it read --tokens, --certificate and --key again; a token that has expired, or is no longer there, is
    refused from then on.

    \b
    Examples:
      skuld gateway
      curl -H 'content-type: application/json' -d '{"queue": "reports", "payload": "2026-11-20"}' \\
        http://127.0.0.1:13080/v1/tasks/enqueue
      skuld token ci --role producer --role reader >> tokens.toml && chmod 600 tokens.toml
      skuld gateway --host 0.0.0.0 --tokens tokens.toml --certificate chain.pem --key key.pem
    """
    from skuld_py.cli.stopping import hangups_noted, until_stopped

    if key is not None and certificate is None:
        raise click.UsageError("--key goes with --certificate: the chain whose key it is.")
    with until_stopped(), hangups_noted() as was_hung_up:  # before what takes long to import
        from skuld_py.cli.showing import print_event
        from skuld_py.gateway.limits import Limits
        from skuld_py.gateway.server import Settings, serve

        limits = Limits(body_bytes=body_mib << 20, requests=requests, waiting=waiting, wait_s=wait_s)
        settings = Settings(addresses_of(nodes), host, port, tokens, hosts, certificate, key, is_behind_proxy,
                            timeout_s, limits, metrics)
        serve(settings, lambda url: print_event(as_json, f"gateway {url} is ready", event="ready", url=url),
              was_hung_up)


@click.command()
@click.argument("name")
@click.option("--role", "roles", type=click.Choice(ROLES), multiple=True,
              help="What it may do, as with the keys of clients; may be given several times.")
@click.option("--scope", "scopes", type=click.Choice(SCOPES), multiple=True,
              help="What it may do, by kinds of verbs; may be given several times.")
@click.option("--queue", "queues", multiple=True, metavar="BEGINNING",
              help="Only with queues that begin so; may be given several times.")
@click.option("--lasting", "life_s", type=Duration(least_s=60, most_s=3_660 * 24 * 3600.0), metavar="DURATION",
              default=None, show_default="for ever", help="When the token ends by itself.")
@json_option
def token(name: str, roles: tuple[str, ...], scopes: tuple[str, ...], queues: tuple[str, ...],
          life_s: float | None, as_json: bool) -> None:
    """Make a token for the caller NAME: its entry for the gateway's file on standard output, and the token itself
    on standard error, this once. With --json, both in one document on standard output.

    A gateway that runs takes it once it is sent SIGHUP.

    \b
    Examples:
      skuld token ci --role producer --role reader >> tokens.toml && chmod 600 tokens.toml
      skuld token night --role worker --queue reports --lasting 90d >> tokens.toml
    """
    from skuld_py.cli.showing import print_json
    from skuld_py.gateway.access import check_queues, hash_of, new_token
    from skuld_py.model.names import check_name

    if not roles and not scopes:
        raise click.UsageError(f"--role: say what it may do; there are {', '.join(ROLES)}.")
    check_name("name", name)
    listed = list(check_queues([*queues])) if queues else []
    made, end = new_token(), None if life_s is None else datetime.now(UTC) + timedelta(seconds=life_s)
    expires = None if end is None else f"{end:%Y-%m-%dT%H:%M:%SZ}"
    if as_json:
        print_json({"name": name, "token": made, "sha256": hash_of(made), "roles": list(dict.fromkeys(roles)),
                    "scopes": list(dict.fromkeys(scopes)), "queues": listed, "expires": expires})
        return
    click.echo(f'[[token]]\nname = "{name}"\nsha256 = "{hash_of(made)}"')
    for key, words in (("roles", roles), ("scopes", scopes), ("queues", listed)):
        if words:
            click.echo(f"{key} = {_listed(words)}")
    if expires is not None:
        click.echo(f"expires = {expires}")
    click.echo()
    click.echo(made, err=True)


def _listed(words: Iterable[str]) -> str:
    """Words as a list in TOML."""
    return "[" + ", ".join(f'"{word}"' for word in dict.fromkeys(words)) + "]"
