#!/usr/bin/env python3
"""The first 20 losses of examples/gpt.uni, computed by JAX and Optax: needs jax and optax, writes gpt_losses.txt.

The weights are the same, as Unisono's keys draw JAX's numbers. tests/gpt.py compares the losses with what gpt.uni prints.
"""
import math
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

HERE = pathlib.Path(__file__).parent
LAYERS, HEADS, WIDTH, CONTEXT, BATCH, CHARACTERS, STEPS = 4, 4, 128, 128, 8, 32, 20


def init(key):
    keys = jax.random.split(key, 2 + 4 * LAYERS)
    spread = lambda i, sizes, deviation: deviation * jax.random.normal(keys[i], sizes)
    small = 0.02 / math.sqrt(2 * LAYERS)
    norm = {"gain": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}
    blocks = [{"attention_norm": norm, "qkv": spread(2 + 4 * i, (WIDTH, 3 * WIDTH), 0.02),
               "mix": spread(3 + 4 * i, (WIDTH, WIDTH), small), "feed_norm": norm,
               "up": spread(4 + 4 * i, (WIDTH, 4 * WIDTH), 0.02), "down": spread(5 + 4 * i, (4 * WIDTH, WIDTH), small)}
              for i in range(LAYERS)]
    return {"characters": spread(0, (CHARACTERS, WIDTH), 0.02), "places": spread(1, (CONTEXT, WIDTH), 0.02),
            "blocks": blocks, "norm": norm}


def normed(x, norm):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * norm["gain"] + norm["bias"]


def loss(params, texts):
    ids, labels = texts[:, :-1].astype(jnp.int32), texts[:, 1:].astype(jnp.int32)
    x = params["characters"][ids] + params["places"]
    for block in params["blocks"]:
        qkv = (normed(x, block["attention_norm"]) @ block["qkv"]).reshape(*x.shape[:-1], 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv[..., 0, :, :], qkv[..., 1, :, :], qkv[..., 2, :, :]
        x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ block["mix"]
        x = x + jax.nn.gelu(normed(x, block["feed_norm"]) @ block["up"], approximate=False) @ block["down"]
    logs = jax.nn.log_softmax(normed(x, params["norm"]) @ params["characters"].T)
    return -jnp.take_along_axis(logs, labels[..., None], -1).mean()


def main():
    tales = jnp.asarray(np.load(HERE / "tales.npy"))
    for_weights, for_batches, _ = jax.random.split(jax.random.key(0), 3)
    rate = optax.warmup_cosine_decay_schedule(0.0, 0.003, 20, 100, 0.0003)
    opt = optax.chain(optax.clip_by_global_norm(1.0),
                      optax.adamw(rate, 0.9, 0.95, weight_decay=0.1, mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p)))

    @jax.jit
    def step(params, state, texts):
        value, gradients = jax.value_and_grad(loss)(params, texts)
        updates, state = opt.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    params = init(for_weights)
    state = opt.init(params)
    losses, start = [], time.time()
    for i in range(STEPS):
        starts = jax.random.randint(jax.random.fold_in(for_batches, i), (8, BATCH // 8), 0, len(tales) - CONTEXT)
        texts = tales[starts.reshape(BATCH)[:, None] + jnp.arange(CONTEXT + 1)]
        params, state, value = step(params, state, texts)
        losses.append(float(value))
        print(f"step {i + 1:4d}: loss {losses[-1]:.5f}  {time.time() - start:.2f} s")
    (HERE / "gpt_losses.txt").write_text("".join(f"{value:.7f}\n" for value in losses))


if __name__ == "__main__":
    main()
