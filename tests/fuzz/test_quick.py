"""The quick way to write YAML that the other tests use says the same as the real one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import pytest
import yaml

from stacks.documents import yaml_text
from stacks.phases import system_addons
from stacks.phases.master import of_master
from tests.fuzz import clusters, quick

CONFIGS = 25  # PyYAML's own reader takes its time
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def test_the_quick_text_holds_the_data_of_the_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [*islice(clusters.sample(seed=2), CONFIGS)]
    written: list[tuple[list[dict[str, object]], str]] = []
    real = yaml.dump_all

    def spy(documents: Iterable[dict[str, object]], **options: object) -> str:
        listed = [*documents]
        text: str = real(listed, **options)  # type: ignore[call-overload]
        written.append((listed, text))
        return text

    monkeypatch.setattr(yaml, "dump_all", spy)
    monkeypatch.setattr(yaml_text, "written", yaml_text.written.__wrapped__)  # every time
    for made in plans:
        system_addons.addons(made)
        for node in made.masters:
            of_master(made, node)
    assert len(written) > CONFIGS * 4
    for documents, text in written:
        held = yaml.load_all(quick.dump_all(documents), Loader=LOADER)
        assert [*held] == [*yaml.load_all(text, Loader=LOADER)]
