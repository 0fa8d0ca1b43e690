"""What is missing of the sandbox is named, with what follows and the way out."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from syncd.files.conversion.sandbox_layers import LANDLOCK, SECCOMP, SandboxLayers, refusal


@pytest.mark.parametrize(
    ("layers", "missing"),
    [
        (SandboxLayers(7, seccomp=True, network_namespace=True), ()),
        (SandboxLayers(1, seccomp=True), ()),
        (SandboxLayers(0, seccomp=True, network_namespace=True), (LANDLOCK,)),
        (SandboxLayers(7, seccomp=False, network_namespace=True), (SECCOMP,)),
        (SandboxLayers(), (LANDLOCK, SECCOMP)),
    ],
)
def test_landlock_and_seccomp_are_required_and_a_namespace_is_not(layers, missing):
    assert layers.missing == missing
    text = refusal(layers, "linux")
    assert bool(text) == bool(missing)
    assert all(layer in text for layer in missing)
    assert not missing or "set kb.confined to preferred" in text
    assert SandboxLayers(**asdict(layers)) == layers


def test_macos_is_named():
    text = refusal(SandboxLayers(), "darwin")
    assert "macOS has neither Landlock nor seccomp" in text
    assert "set kb.confined to preferred" in text
