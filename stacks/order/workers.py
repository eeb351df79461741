"""Add-ons, waves of workers that exist, and how new ones join; add-ons of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from stacks.cluster import addon_secrets
from stacks.cluster.user_addons import Addon
from stacks.config.spec import AddonSpec
from stacks.order.control_plane import prepared
from stacks.order.scene import Scene, attempted, hashed
from stacks.order.step import From, Said, Source, Step, ca
from stacks.phases import join, manifests, rotation, scripts, system_addons, wave


def settled_keys(scene: Scene) -> Iterator[Step]:
    """What the cluster keeps of its CAs, once the last master has made a rotation's step."""
    values = rotation.of_rotation(scene.plan)
    if values:
        yield from attempted(
            Step(
                name=scene.own("rotation"),
                kind="phase",
                node=scene.master,
                phase="rotation",
                after=(last_master(scene),),
                values=values,
            )
        )


def last_master(scene: Scene) -> str:
    return scene.of(scene.last_master.name, "master")


def served(scene: Scene) -> str:
    """From when on the API can be used for good."""
    if rotation.of_rotation(scene.plan):
        return scene.own("rotation")
    node = scene.plan.masters[0] if scene.previous is None else scene.last_master
    return scene.of(node.name, "master")


def addons(scene: Scene) -> Iterator[Step]:
    """What runs in every cluster of kube-ha, each its manifest."""
    for name, manifest in sorted(system_addons.addons(scene.plan).items()):
        values = system_addons.of_addon(scene.plan, name, manifest)
        before = (scene.own(f"addon-{one}") for one in system_addons.before(scene.plan, name))
        step = Step(
            name=scene.own(f"addon-{name}"),
            kind="phase",
            node=scene.master,
            phase="addon",
            parent=scene.own("addons"),
            after=(served(scene), *before),
            values=values,
        )
        yield from attempted(step, (manifest, values["GENERATION"]))


def applied(scene: Scene) -> tuple[str, ...]:
    """Names of these."""
    return tuple(scene.own(f"addon-{name}") for name in sorted(system_addons.addons(scene.plan)))


def opened(scene: Scene) -> str:
    """What opens the last wave."""
    total = len(wave.gates(scene.plan, _held_back(scene)))
    return scene.own(f"wave-{total - 1}") if total else _before_waves(scene)


def _before_waves(scene: Scene) -> str:
    return last_master(scene) if scene.previous else served(scene)


def _held_back(scene: Scene) -> frozenset[str]:
    """Whom gates ask for: who exists and is there."""
    return scene.settled - {node.name for node in scene.plan.absent}


def waves(scene: Scene) -> Iterator[Step]:
    """A gate before each wave, and the workers."""
    opens: dict[str, str] = {}
    last = _before_waves(scene)
    for gate in wave.gates(scene.plan, _held_back(scene)):
        step = _gate(scene, gate, last)
        yield step
        # While nobody is held back, one gate need not wait for the other.
        last = step.name if scene.settled else last
        opens |= dict.fromkeys(gate.opens, step.name)
    for node in scene.plan.workers:
        yield from prepared(scene, node, opens[node.name] if node.name in scene.settled else None)


def _gate(scene: Scene, gate: wave.Gate, after: str) -> Step:
    """It depends on no node: it asks the cluster whether those of its wave are as wanted."""
    listed = {
        key: From((ca(),), partial(_lines, scene, names)) for key, names in gate.lists.items()
    }
    return Step(
        name=scene.own(f"wave-{gate.number}"),
        kind="phase",
        node=scene.master,
        phase="wave",
        parent=scene.cluster,
        after=(after,),
        values={**listed, **gate.settings, **scene.once},
        ignores="any",
        trigger=From((ca(),), lambda pem: wave.trigger(scene.plan, gate, scene.hashes(pem))),
    )


def _lines(scene: Scene, names: tuple[str, ...], pem: str) -> str:
    return wave.lines(scene.plan, names, scene.hashes(pem))


def joined(scene: Scene) -> Iterator[Step]:
    """A token of the hour, then each new worker on its own, in parallel."""
    plan = scene.plan
    pending = scene.joining
    token = Source("join token", join.purpose(pending, scene.now_s))
    guards = (scene.own(f"addon-{name}") for name in system_addons.GUARDS)
    example = join.of_mint(plan, scene.master, "", pending)
    yield Step(
        name=scene.own("join-token"),
        kind="phase",
        node=scene.master,
        phase="mint",
        after=(served(scene), *guards),
        values={
            **{key: From((token,), partial(_minted, scene, key)) for key in example},
            **scene.once,
        },
        # A worker that left and is put back within the hour has the same token, which was deleted
        # meanwhile.
        stamp=scene.attempt,
        is_secret=True,
        ignores="" if pending else "any",
    )
    for node in plan.workers:
        ready = scene.of(node.name, "node")
        told: dict[str, Said] = {
            key: From((ca(), token), partial(_joined, scene, node.name, key))
            for key in ("KUBEADM_CONFIG", "DISCOVERY")
        }
        yield Step(
            name=scene.of(node.name, "join"),
            kind="phase",
            node=node,
            phase="join",
            parent=scene.own(node.pool),
            after=(ready, scene.own("join-token")),
            values={**told, **scene.once},
            is_secret=True,
            # Joining happens once, with the token of that hour; later changes are the node phase's.
            ignores="" if node.name in scene.recreated else "any",
        )


def _minted(scene: Scene, key: str, token: str) -> str:
    return join.of_mint(scene.plan, scene.master, token, scene.joining)[key]


def _joined(scene: Scene, node: str, key: str, pem: str, token: str) -> str:
    return join.of_join(scene.plan, scene.plan.node(node), pem, token)[key]


def user_addons(scene: Scene) -> Iterator[Step]:
    """Add-ons that the config names: files brought to a master, which applies them in turn."""
    # The token first: what an add-on's objects wait for may run on workers.
    waits = (*applied(scene), scene.own("join-token"))
    last: tuple[str, ...] = ()
    for addon in scene.plan.addons:
        name, values = scene.own(f"addon-{addon.name}"), manifests.manifests(scene.plan, addon)
        secrets = addon_secrets.values(_said(scene, addon))
        known = (*values.values(), *_marks(scene, addon, secrets))
        wanted = hashed((scripts.script_sum("manifests"), *known))
        files = [
            replace(file, node=scene.master, after=waits, parts=(wanted,))
            for file in _files(scene, addon, values.get("LIST", ""))
        ]
        yield from files
        step = Step(
            name=name,
            kind="phase",
            node=scene.master,
            phase="manifests",
            after=(*waits, *last, *(file.name for file in files)),
            values={**values, **_secrets(scene, addon, secrets)},
            is_secret=bool(secrets),
        )
        # All files are copied again together.
        yield from [replace(step, stamp=files[0].name)] if files else attempted(step, known)
        last = (name,)


def _files(scene: Scene, addon: Addon, listed: str) -> Iterator[Step]:
    """What is brought to the master; `listed`: name and sum of a file with its objects' names."""
    name = scene.own(f"addon-{addon.name}")
    for number, (path, _) in enumerate(addon.files):
        yield Step(
            name=f"{name}-file-{number + 1}",
            kind="file",
            text=path,
            content=addon.text,
            is_big=_said(scene, addon).chart is not None,
            target=manifests.shipped(addon, number),
        )
    if listed:
        yield Step(
            name=f"{name}-file-{len(addon.files) + 1}",
            kind="file",
            text=f"objects of {addon.name}",
            content=manifests.objects(addon),
            is_big=True,
            target=listed.partition(" ")[0],
        )


def _said(scene: Scene, addon: Addon) -> AddonSpec:
    """What the config says of it; of a memory it may be nothing."""
    return scene.plan.spec.addons.get(addon.name, AddonSpec())


def _secrets(scene: Scene, addon: Addon, names: tuple[str, ...]) -> dict[str, Said]:
    """The Secrets that it brings, with their values; nothing where there are none."""
    if not names:
        return {}
    said = _said(scene, addon)

    def make(*texts: str) -> str:
        return addon_secrets.manifest(said, dict(zip(names, texts, strict=True)))

    return {"SECRETS": From(tuple(Source("addon secret", name) for name in names), make)}


def _marks(scene: Scene, addon: Addon, names: tuple[str, ...]) -> tuple[Said, ...]:
    """What is another one when one of its Secrets is, and says nothing about a value."""
    if not names:
        return ()
    marks = (From((Source("addon mark", name),), str) for name in names)
    return (manifests.outline(scene.plan, addon), *marks)
