"""A Helm chart as an add-on: the packed chart, its values, and what it is rendered for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, WithJsonSchema

from stacks.config.fields import ApiVersion, DnsLabel, FilePath, Section, Sha256

# Whatever the chart asks for: an editor cannot know.
_Values = Annotated[dict[str, JsonValue], WithJsonSchema({"type": "object"})]


class ChartSpec(Section):
    file: FilePath = Field(
        description="packed chart (.tgz), relative to the project's folder; make chart fetches one"
    )
    sha256: Sha256 = Field(description="sum of that file: any other one is refused")
    namespace: DnsLabel = Field(
        "default", description="where its objects are that name no namespace"
    )
    create_namespace: bool = Field(
        default=False, description="the add-on makes that namespace, too"
    )
    values: _Values = Field(
        default_factory=dict, description="values of the chart, over those of valuesFiles"
    )
    values_files: tuple[FilePath, ...] = Field(
        (), description="files of values in YAML, relative to the project's folder; later ones win"
    )
    api_versions: tuple[ApiVersion, ...] = Field(
        (),
        description="versions of the API that the chart may count on beside those of Kubernetes, "
        "as monitoring.coreos.com/v1",
    )
    hooks: Literal["refuse", "skip"] = Field(
        "refuse",
        description="skip: the chart is taken without its hooks, which nothing here runs",
    )
