"""What the two image data sets share: idx files, halving, label noise, planted correlations."""

from __future__ import annotations

import gzip

import numpy as np
from numpy.typing import NDArray

from demo.train.archives import ArchiveError


def idx(content: bytes) -> NDArray[np.uint8]:
    """An idx file as an array: two zero bytes, type, rank, sizes, then the values."""
    raw = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    if raw[:3] != b"\x00\x00\x08":
        raise ArchiveError(f"An idx file of bytes starts with 00 00 08; this one with {raw[:3]!r}.")
    rank = raw[3]
    shape = np.frombuffer(raw, ">i4", rank, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(shape)


def halved(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """28 × 28 bytes to 14 × 14 in [0, 1], by the mean of each 2 × 2 block."""
    n = len(images)
    return (images.reshape(n, 14, 2, 14, 2).mean(axis=(2, 4)) / 255).astype(np.float32)


def flipped(y: NDArray[np.bool_], share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Labels of which each is turned round with probability ``share``."""
    return y ^ (rng.random(len(y)) < share)


def agreeing(
    y: NDArray[np.bool_], share: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """An attribute that equals the label with probability ``share`` (n,), else its opposite."""
    return y == (rng.random(len(y)) < share)
