"""Products of matrices in JAX. Those of complex numbers are cuBLAS's alone."""

import jax
import jax.numpy as jnp
import numpy as np

matrix = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float16)
product = jax.jit(jnp.dot)
np.testing.assert_allclose(product(jnp.asarray(matrix), jnp.asarray(matrix)), matrix @ matrix, atol=0.1)
try:
    product(jnp.asarray(matrix, jnp.complex64), jnp.asarray(matrix, jnp.complex64))
except jax.errors.JaxRuntimeError as error:
    print(f"complex: {type(error).__name__}")
np.testing.assert_allclose(product(jnp.asarray(matrix), jnp.ones(64, np.float16)), matrix @ np.ones(64, np.float16), atol=0.1)
