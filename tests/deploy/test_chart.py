"""The Helm chart: what it renders is what Kubernetes takes, for a release with everything and one with little."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from deploy import chart
from deploy.chart import CHART, documents, rendered, values

KUBERNETES = ("1.27", kubernetes_validate.latest_version())
"""The oldest that Chart.yaml takes, and the newest whose schemas are known here."""
EVERYTHING = {**values(), "worker": {**values()["worker"], "enabled": True}}
LITTLE = {**values(), "nodes": 1, "gateway": {**values()["gateway"], "enabled": False}}
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))


def one(kind: str, name: str) -> dict[str, Any]:
    found, = (each for each in documents(EVERYTHING) if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("given", [EVERYTHING, LITTLE], ids=["everything", "little"])
def test_kubernetes_takes_all_of_it(given: dict[str, Any], version: str) -> None:
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


def test_values_are_checked_before_anything_is_made() -> None:
    jsonschema.validate(values(), SCHEMA)
    for wrong in ({"nodes": 0}, {"nodes": "3"}, {"keysSecret": ""}, {"zookeeper": "zk"}, {"cluster": "a b"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**values(), **wrong}, SCHEMA)


def test_a_form_that_is_not_known_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="unknown form"):
        rendered("a: {{ include \"x\" . }}\n", values())


@pytest.mark.skipif(shutil.which("helm") is None, reason="NOT COMPARED with Helm: this machine has none")
def test_helm_renders_the_same() -> None:
    ran = subprocess.run(["helm", "template", chart.RELEASE["Name"], str(CHART), "--namespace",
                          chart.RELEASE["Namespace"], "--set", "worker.enabled=true"],
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
