"""At the operator's desk: has the worker's machine work something out, and asks the gateway's machine what came of
it.

    python -m machines.desk NODES GATEWAY-URL TOKEN CERTIFICATE
"""

from __future__ import annotations

import json
import ssl
import sys
import urllib.request

from machines.app import total
from skuld_py import Client, using

WAIT_S = 600.0
"""Spark takes long to start where others compute, too."""


def main(nodes: str, url: str, token: str, certificate: str) -> None:
    """Print the result that the client was told, and the state and queue that the gateway tells."""
    with Client(nodes.split(","), timeout_s=10) as client, using(client):
        task_id = total.send(1_000)
        result, = client.results([task_id], wait_s=WAIT_S)
    asked = urllib.request.Request(f"{url}/v1/tasks/{task_id}", headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, context=ssl.create_default_context(cafile=certificate)) as answer:
        told = json.load(answer)
    print(json.dumps({"result": result, "state": told["state"], "queue": told["queue"]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
