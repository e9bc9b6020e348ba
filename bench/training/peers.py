"""The programs beside this one in JAX and Optax, on one device with all threads. Called by bench/training.py: NAME STEPS."""
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "examples/data"


def mlp(layers, x):
    for w, b in layers[:-1]:
        x = jax.nn.relu(x @ w + b)
    return x @ layers[-1][0] + layers[-1][1]


def mlp_init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    draw = jax.nn.initializers.he_normal()
    return [(draw(k, (n, m)), jnp.zeros(m)) for k, n, m in zip(keys, sizes, sizes[1:])]


def digits(batch):
    images = jnp.asarray(np.load(DATA / "digits_images.npy"), jnp.float32) / 16
    labels = jnp.asarray(np.load(DATA / "digits_labels.npy"))

    def batches(i):
        chosen = (batch * i + jnp.arange(batch)) % 1437
        return images[chosen], labels[chosen]
    return batches


def mlp_digits():
    def loss(layers, x, y):
        return optax.softmax_cross_entropy_with_integer_labels(mlp(layers, x), y).mean()
    return loss, optax.adam(0.001), mlp_init(jax.random.key(1), (64, 128, 64, 10)), digits(96)


def conv_digits():
    def conv(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(p, x, y):
        h = jax.nn.relu(conv(x.reshape(-1, 8, 8, 1), p["first"]) + p["first_bias"])
        h = jax.nn.relu(conv(h, p["second"]) + p["second_bias"])
        h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        logs = jax.nn.log_softmax(mlp(p["layers"], h.reshape(-1, 512)))
        return -0.9 * jnp.take_along_axis(logs, y[:, None], -1).mean() - 0.1 * logs.mean()
    k1, k2, k3 = jax.random.split(jax.random.key(1), 3)
    draw = jax.nn.initializers.he_normal()
    params = {"first": draw(k1, (3, 3, 1, 16)), "first_bias": jnp.zeros(16), "second": draw(k2, (3, 3, 16, 32)),
              "second_bias": jnp.zeros(32), "layers": mlp_init(k3, (512, 64, 10))}
    return loss, optax.adam(0.001), params, digits(48)


def gpt():
    sys.path.insert(0, str(DATA))
    import gpt_jax as model
    tales = jnp.asarray(np.load(DATA / "tales.npy"))
    for_weights, for_batches, _ = jax.random.split(jax.random.key(0), 3)
    rate = optax.warmup_cosine_decay_schedule(0.0, 0.003, 20, 100, 0.0003)
    opt = optax.chain(optax.clip_by_global_norm(1.0),
                      optax.adamw(rate, 0.9, 0.95, weight_decay=0.1, mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p)))

    def batches(i):
        starts = jax.random.randint(jax.random.fold_in(for_batches, i), (8, 1), 0, len(tales) - model.CONTEXT)
        return (tales[starts + jnp.arange(model.CONTEXT + 1)],)
    return model.loss, opt, model.init(for_weights), batches


def main():
    steps = int(sys.argv[2])
    loss, opt, params, batches = {"mlp_digits": mlp_digits, "conv_digits": conv_digits, "gpt": gpt}[sys.argv[1]]()
    state = opt.init(params)

    @jax.jit
    def step(params, state, *batch):
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        updates, state = opt.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    batches = jax.jit(batches)
    for i in range(steps):
        params, state, value = step(params, state, *batches(i))
        if i == 0:
            print("first", float(value), flush=True)
            start = time.perf_counter()
    print("last", float(value), flush=True)
    print("seconds", (time.perf_counter() - start) / (steps - 1))


if __name__ == "__main__":
    main()
