"""kubectl with the kubeconfig of a stack's administrator, and no other."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from operations.engine.engine import StackError

_LIMIT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """The program, and the file that says which cluster it asks."""

    program: Path
    kubeconfig: Path

    def text(self, *words: str, stdin: str = "", limit_s: float = _LIMIT_S) -> str:
        """Stdout. Raises StackError."""
        command = [str(self.program), "--kubeconfig", str(self.kubeconfig), *words]
        try:
            done = subprocess.run(
                command, input=stdin, capture_output=True, text=True, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise StackError(
                f"kubectl {words[0]}: no answer of the API within {limit_s:.0f} s\n"
                "  do: see that this computer reaches the API (make api, in clouds)"
            ) from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise StackError(
                f"kubectl {' '.join(words[:3])}: {last}\n"
                "  do: see that this computer reaches the API (make status; make api, in clouds)"
            )
        return done.stdout

    def items(self, *words: str) -> list[dict[str, object]]:
        """The objects that `kubectl get` lists. Raises StackError."""
        listed = json.loads(self.text("get", *words, "--output", "json"))["items"]
        return listed if isinstance(listed, list) else []
