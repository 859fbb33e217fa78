"""The catalogue's row for registers that a tensor core may still use."""

from __future__ import annotations

from typing import Final

from consan.reports.catalogue.situations import GENERAL, CatalogueEntry, Situation

_NOT_COVERED = "a wait for the wgmma.mma_async of {first_at} before this {second_role}: wgmma.wait_group"
_WAIT_BETWEEN = "wait with wgmma.wait_group.sync.aligned {leave} ({wait_cpp}) after the {commit} and before {second_at}"

REGISTER_HAZARD: Final = CatalogueEntry(
    "register-hazard",
    "register hazard",
    "error",
    "{registers} of the wgmma.mma_async at {first_at}: touched at {second_at} before it has been waited for",
    {
        "touched-before-wait/RAW": Situation(
            _NOT_COVERED,
            _WAIT_BETWEEN,
            "the {second_role} of {registers} at {second_at} can come before the wgmma.mma_async at {first_at} has written its result",
        ),
        "touched-before-wait/WAR": Situation(
            _NOT_COVERED,
            _WAIT_BETWEEN,
            "the {second_role} of {registers} at {second_at} can overwrite A while the wgmma.mma_async at {first_at} still reads it",
        ),
        "touched-before-wait/WAW": Situation(
            _NOT_COVERED,
            _WAIT_BETWEEN,
            "the {second_role} of {registers} at {second_at} and the wgmma.mma_async at {first_at} can land in either order",
        ),
        "not-committed": Situation(
            "{commit} between the wgmma.mma_async and its wait: a wait covers committed groups only",
            "commit with {commit} ({commit_cpp}) after {first_at} and before the wait",
            "the {second_role} of {registers} at {second_at}: the wgmma.mma_async at {first_at} was waited for before it was committed",
        ),
        "no-fence": Situation(
            "wgmma.fence.sync.aligned between (1) and (2)",
            "put wgmma.fence.sync.aligned ({wgmma_fence}) after {first_at} and before {second_at}",
            "the wgmma.mma_async at {second_at} uses {registers} with no wgmma.fence after the {first_role} at {first_at}",
        ),
        "written-after-fence": Situation(
            "the write of {registers} above the wgmma.fence{fence_at}",
            "{pin}",
            "in the compiled code, the write of {registers} for the wgmma.mma_async at {second_at} is below the wgmma.fence{fence_at},"
            " and the ISA asks for it above; ptxas orders such plain writes before the wgmma by itself",
            "warning",
        ),
        "never-fenced": Situation(
            "wgmma.fence.sync.aligned before the first wgmma.mma_async of the warpgroup",
            "put wgmma.fence.sync.aligned ({wgmma_fence}) before {first_at}",
            "the wgmma.mma_async at {first_at} can be the first one, and no wgmma.fence comes before it",
        ),
        GENERAL: Situation("wgmma.wait_group between (1) and (2)", "wait with wgmma.wait_group.sync.aligned 0 before {second_at}"),
    },
    caption="The warp and the tensor core use the same registers in no order.",
    by_compiler=True,
)
