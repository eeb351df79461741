"""The provider of `KubernetesCluster`, as the engine starts it from this folder."""

import sys
from pathlib import Path

# The folder of the checkout: this one alone is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from components import component_provider

component_provider.serve(sys.argv[1:])
