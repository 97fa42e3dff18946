"""The Helm chart: what it renders is what Kubernetes takes, for a release with everything and one with little."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import click
import pytest
import yaml

from deploy import chart
from deploy.chart import CHART, documents, rendered, values
from deploy.typed import DEPLOY
from skuld_py.cli.gateway import gateway
from skuld_py.cli.node import node
from skuld_py.cli.twins import name_variables, options_of
from skuld_py.cli.worker import worker
from skuld_py.verbs.queues import ready as READY

WORKER = {**values()["worker"], "enabled": True, "environment": {"SKULD_WORKER_LEASE": "1m"}}
EVERYTHING = {**values(), "worker": WORKER,
              "nodeEnvironment": {"SKULD_RETENTION": "30d", "SKULD_NODE_TIMING_GOSSIP": "1s"}}
LITTLE = {**values(), "nodes": 1, "gateway": {**values()["gateway"], "enabled": False}}
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))


def one(kind: str, name: str) -> dict[str, Any]:
    found, = (each for each in documents(EVERYTHING) if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


@pytest.mark.parametrize("version", ["1.27", "newest"], ids=["the oldest in Chart.yaml", "the newest known"])
@pytest.mark.parametrize("given", [EVERYTHING, LITTLE], ids=["everything", "little"])
def test_kubernetes_takes_all_of_it(given: dict[str, Any], version: str) -> None:
    import kubernetes_validate  # here, for it takes seconds, and every process collects this file

    if version == "newest":
        version = kubernetes_validate.latest_version()
    for document in documents(given):
        kubernetes_validate.validate(document, version, strict=True)


def test_what_is_off_is_not_there() -> None:
    kinds = [(each["kind"], each["metadata"]["name"]) for each in documents(LITTLE)]

    assert sorted(kinds) == [("PodDisruptionBudget", "demo-nodes"), ("Service", "demo-nodes"),
                             ("StatefulSet", "demo-node")]


def test_selectors_choose_what_they_are_for_and_nothing_else() -> None:
    pods = {each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
            for each in documents(EVERYTHING) if "template" in each["spec"]}

    def chosen(document: dict[str, Any]) -> list[str]:
        selector = document["spec"]["selector"]
        wanted = selector.get("matchLabels", selector).items()
        return [name for name, labels in pods.items() if wanted <= labels.items()]

    for kind, name, pod in (("Service", "demo-nodes", "demo-node"),
                            ("PodDisruptionBudget", "demo-nodes", "demo-node"),
                            ("StatefulSet", "demo-node", "demo-node"), ("Service", "demo-gateway", "demo-gateway"),
                            ("PodDisruptionBudget", "demo-gateway", "demo-gateway"),
                            ("Deployment", "demo-worker", "demo-worker")):
        assert chosen(one(kind, name)) == [pod], (kind, name)


def test_nodes_keep_their_data_are_found_before_they_are_ready_and_leave_one_at_a_time() -> None:
    nodes, service = one("StatefulSet", "demo-node")["spec"], one("Service", "demo-nodes")["spec"]
    container, = nodes["template"]["spec"]["containers"]

    assert nodes["serviceName"] == "demo-nodes" and service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"] is True
    assert container["args"][container["args"].index("--advertise") + 1] == "$(POD_NAME).demo-nodes.prod.svc"
    data = container["args"][container["args"].index("--data") + 1]
    kept, = (each["mountPath"] for each in container["volumeMounts"] if each["name"] == "data")
    assert data.startswith(kept + "/")
    assert one("PodDisruptionBudget", "demo-nodes")["spec"]["maxUnavailable"] == 1
    assert "readinessProbe" in container and "livenessProbe" not in container


def test_no_pod_runs_as_root_or_writes_where_it_need_not() -> None:
    for document in documents(EVERYTHING):
        pod = document["spec"].get("template", {}).get("spec")
        if pod is None:
            continue
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in [*pod["containers"], *pod.get("initContainers", ())]:
            allowed = container["securityContext"]
            assert allowed["readOnlyRootFilesystem"] and not allowed["allowPrivilegeEscalation"]
            mounted = {each["name"] for each in container.get("volumeMounts", ())}
            claims = {each["metadata"]["name"] for each in document["spec"].get("volumeClaimTemplates", ())}
            assert mounted <= {each["name"] for each in pod.get("volumes", ())} | claims


def test_no_pod_is_told_of_services_by_variables_that_look_like_options() -> None:
    pods = [pod for document in documents(EVERYTHING) if (pod := document["spec"].get("template", {}).get("spec"))]

    assert pods and all(pod["enableServiceLinks"] is False for pod in pods)


def test_each_part_shows_metrics_where_a_prometheus_is_told_to_look() -> None:
    for kind, name in (("StatefulSet", "demo-node"), ("Deployment", "demo-gateway"),
                       ("Deployment", "demo-worker")):
        template = one(kind, name)["spec"]["template"]
        container, = template["spec"]["containers"]
        port, = (each["containerPort"] for each in container["ports"] if each["name"] == "metrics")

        assert container["args"][container["args"].index("--metrics") + 1] == f"0.0.0.0:{port}"
        told = template["metadata"]["annotations"]
        assert told == {"prometheus.io/scrape": "true", "prometheus.io/port": str(port)}


def test_a_gateway_is_ready_when_a_node_answers_it() -> None:
    container, = one("Deployment", "demo-gateway")["spec"]["template"]["spec"]["containers"]
    probe = container["readinessProbe"]["httpGet"]

    assert (probe["path"], probe["scheme"]) == (READY.path, "HTTPS") and READY.scope is None
    allowed = container["args"][container["args"].index("--allow-host") + 1]
    assert probe["httpHeaders"] == [{"name": "Host", "value": allowed}]


def test_further_options_are_variables() -> None:
    container, = one("StatefulSet", "demo-node")["spec"]["template"]["spec"]["containers"]

    assert [(each["name"], each.get("value")) for each in container["env"]] == [
        ("POD_NAME", None), ("SKULD_NODE_TIMING_GOSSIP", "1s"), ("SKULD_RETENTION", "30d")]
    known = {name for verb in (node, gateway, worker) for name in names_of(verb)}
    for place in (CHART / "values.yaml", DEPLOY / "systemd" / "skuld.env"):
        told = set(re.findall(r"\bSKULD_[A-Z_]+", place.read_text(encoding="utf-8")))
        assert told and told - known == set(), place


def names_of(verb: click.Command) -> list[str]:
    """The variables of a verb's options."""
    name_variables(verb, (str(verb.name),))
    return [name for option in options_of(verb).values() for name in option.envvar or ()]


def test_values_are_checked_before_anything_is_made() -> None:
    import jsonschema  # here, for it takes seconds, and every process collects this file

    jsonschema.validate(values(), SCHEMA)
    for wrong in ({"nodes": 0}, {"nodes": "3"}, {"keysSecret": ""}, {"zookeeper": "zk"}, {"cluster": "a b"},
                  {"nodeEnvironment": {"RETENTION": "30d"}}, {"nodeEnvironment": {"SKULD_RETENTION": 30}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**values(), **wrong}, SCHEMA)


def test_a_form_that_is_not_known_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="unknown form"):
        rendered("a: {{ include \"x\" . }}\n", values())


@pytest.mark.skipif(shutil.which("helm") is None, reason="NOT COMPARED with Helm: this machine has none")
def test_helm_renders_the_same() -> None:
    ran = subprocess.run(["helm", "template", chart.RELEASE["Name"], str(CHART), "--namespace",
                          chart.RELEASE["Namespace"], "--set", "worker.enabled=true", "--set",
                          "worker.environment.SKULD_WORKER_LEASE=1m", "--set",
                          "nodeEnvironment.SKULD_RETENTION=30d,nodeEnvironment.SKULD_NODE_TIMING_GOSSIP=1s"],
                         capture_output=True, text=True, check=True)

    def key(each: dict[str, Any]) -> tuple[str, str]:
        return each["kind"], each["metadata"]["name"]

    theirs = [each for each in yaml.safe_load_all(ran.stdout) if each]
    assert sorted(theirs, key=key) == sorted(documents(EVERYTHING), key=key)


def test_the_chart_is_of_this_release() -> None:
    told = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    setup = (chart.TOP / "setup.cfg").read_text(encoding="utf-8")
    version, = re.findall(r"^version = (\S+)$", setup, re.MULTILINE)

    assert told["appVersion"] == version
    assert values()["image"] == f"skuld:{version}" and values()["workerImage"] == f"skuld-worker:{version}"
