#!/usr/bin/env bash
# optax.masked trains the parameters that its mask leaves out, uphill and without a learning rate.
#
# Seen with: jax 0.10.2, optax 0.2.8, CPython 3.11.
#
# The mask says for which parameters the optimizer works. Those of a pretrained backbone are left out to freeze them,
# but for them the gradients pass through unchanged, and apply_updates adds them: here the backbone goes to 27 in three
# steps, away from its minimum at 0, while the head learns. With small gradients, the loss may still fall.
# masked(set_to_zero) for the others keeps them.
#
# Output seen:
#   start: backbone 1.0, head 1.0
#   masked(adam), 3 steps: backbone 27.0, head 0.7
#   masked(adam), then masked(set_to_zero): backbone 1.0, head 0.7
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  jax==0.10.2 jaxlib==0.10.2 optax==0.2.8

cat > masked.py <<'PYTHON'
import jax
import jax.numpy as jnp
import optax

head_only, backbone_only = {"backbone": False, "head": True}, {"backbone": True, "head": False}
masked = optax.masked(optax.adam(0.1), head_only)


def loss(parameters: dict) -> jax.Array:
    return parameters["backbone"] ** 2 + parameters["head"] ** 2


def shown(what: str, parameters: dict) -> None:
    print(f"{what}: backbone {parameters['backbone']:.1f}, head {parameters['head']:.1f}")


start = {"backbone": jnp.array(1.0), "head": jnp.array(1.0)}
shown("start", start)
for what, optimizer in (
    ("masked(adam), 3 steps", masked),
    ("masked(adam), then masked(set_to_zero)", optax.chain(masked, optax.masked(optax.set_to_zero(), backbone_only))),
):
    parameters, state = start, optimizer.init(start)
    for _ in range(3):
        updates, state = optimizer.update(jax.grad(loss)(parameters), state, parameters)
        parameters = optax.apply_updates(parameters, updates)
    shown(what, parameters)
PYTHON

venv/bin/python masked.py | tee found
diff seen found
