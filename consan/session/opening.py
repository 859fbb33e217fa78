"""Opens the session that the options of a command ask for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consan.session.session import Session


def open_session(arguments: argparse.Namespace, **others: Any) -> Session:
    """The session that the options ask for."""
    from consan.session.session import Session  # late: --help needs no session

    return Session(
        device=arguments.device,
        seed=arguments.seed,
        strict=arguments.strict,
        policy=arguments.policy,
        kernel_filter=arguments.kernel_name,
        launch_skip=arguments.launch_skip,
        launch_count=arguments.launch_count,
        timeout=arguments.timeout,
        shadow_memory=arguments.shadow_memory,
        assembly=arguments.assembly,
        engine=arguments.engine,
        trace_memory=arguments.trace_memory,
        exhaustive=arguments.exhaustive,
        keep_histories=arguments.keep_histories,
        triton_arch=getattr(arguments, "triton_arch", "sm_90"),
        skip_benchmarks=getattr(arguments, "skip_benchmarks", False),
        **others,
    )
