"""Which resources of a cloud an edit changes, as its provider would find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stacks.providers.resources import Ref, Resource, Text, Value


@dataclass(frozen=True, slots=True)
class Difference:
    """Of one resource, that was there and is wanted."""

    properties: frozenset[str]  # that are other ones
    is_replaced: bool

    def __bool__(self) -> bool:
        return bool(self.properties) or self.is_replaced


@dataclass(frozen=True, slots=True)
class Differences:
    """Of what was there and what is wanted, both by name."""

    was: Mapping[str, Resource]
    now: Mapping[str, Resource]
    _known: dict[str, Difference] = field(default_factory=dict)

    def changed(self) -> list[str]:
        """Names of those that are there, and are changed or replaced."""
        return [name for name in self.now if name in self.was and self.of(name)]

    def of(self, name: str) -> Difference:
        """Of a resource that is in both. Raises KeyError."""
        if name not in self._known:
            self._known[name] = self._found(self.was[name], self.now[name])
        return self._known[name]

    def _found(self, was: Resource, now: Resource) -> Difference:
        old, new = was.properties, now.properties
        keys = {*old, *new} - {*now.opts.ignores}
        changed = {key for key in keys if not self._same(old.get(key), new.get(key))}
        left = any(
            self._lacks(old.get(key), new.get(key))
            for key in changed.intersection(now.opts.stands_in)
        )
        return Difference(frozenset(changed), left or was.opts.trigger != now.opts.trigger)

    def _same(self, was: Value, now: Value) -> bool:
        match was, now:
            case Ref(), Ref():
                return was == now and not self._is_another(was)
            case Text(), Text():
                return was.make == now.make and self._same(was.of, now.of)
            case Mapping(), Mapping():
                return all(self._same(was.get(key), now.get(key)) for key in {*was, *now})
            case (list() | tuple(), list() | tuple()):
                pairs = zip(was, now, strict=False)
                return len(was) == len(now) and all(self._same(*pair) for pair in pairs)
        return was == now

    def _lacks(self, was: Value, now: Value) -> bool:
        """Whether something is no more that was there."""
        if not isinstance(was, list | tuple) or not isinstance(now, list | tuple):
            return True
        return not all(any(self._same(one, other) for other in now) for one in was)

    def _is_another(self, of: Ref) -> bool:
        """Whether an output is another one; what a lookup finds is taken for the same."""
        if of.name not in self.was or of.name not in self.now:
            return False
        if of.output in self.now[of.name].properties:
            return of.output in self.of(of.name).properties
        return self.of(of.name).is_replaced
