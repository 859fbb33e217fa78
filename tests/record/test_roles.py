"""Words are stored as the roles of their leaves say (instrument/effects/model.py). A word that is wrongly not hashed merges unlike CTAs.

What a role is for shows test_roles_differ.py: of many CTAs one differs in a leaf of one role, and is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from record_support import KERNELS, twin_file

from consan.instrument.effects import NO_WORD, Effect, kinds
from consan.instrument.effects.model import ROW, VALUES, Role, leaves
from consan.instrument.record import Recorded, record
from consan.instrument.record.text.words import Words

HASHED, LOOSE = {Role.PLACE, Role.NUMBER}, {Role.LOOSE, Role.WIDE, Role.DIGEST}
# Twins that have all kinds of events between them, and whether global memory is recorded.
TWINS = {
    "cp_async_zero_fill": True, "deadlock_no_drop": True, "mbarrier_copies_not_included": False, "bulk_load_producer_phase": True,
    "bulk_store_source_overwritten": False, "tma_store_two_stages": False, "cluster_pair_multicast": False,
    "mbarrier_inval_in_flight": False, "cluster_st_async_not_waited": False, "cluster_pushes_of_two_ctas": False,
    "st_bulk_no_barrier": False, "wgmma_one_wait_for_two": False, "reduction_no_syncwarp": True, "named_barrier_counts_disagree": True,
    "cluster_init_no_fence": True, "tensormap_not_acquired": True, "update_by_lanes": True, "wgmma_fence_missing": False,
    "launch_before_peer": False, "store_pending": False, "isa_pair_dealloc": False, "two_issuers": False, "collector_not_filled": False,
    "annotated_handover": True, "acquired_by_other_lane": True, "relaxed_poll_no_fence": True,
}  # fmt: skip


# What no twin has.
OTHERS = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b32 %r<3>; .reg .b64 %d<3>;
    mov.u32 %r1, %tid.x; cvt.u64.u32 %d1, %r1;
    tcgen05.cp.cta_group::1.128x256b [%r1], %d1;
    tcgen05.shift.cta_group::1.down [%r1];
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    griddepcontrol.wait;
    ld.param.u64 %d2, [p];
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 16;
    multimem.red.release.gpu.global.add.u32 [%d2], %r1;
    ret;
}
"""
NOT_RECORDED = {"ProductFence"}  # only in changes of a text


@pytest.fixture(scope="module")
def stored() -> Iterator[dict[tuple[int, int], bool]]:
    """By block of the latest module and position: whether a word is hashed."""
    found: dict[tuple[int, int], bool] = {}
    with pytest.MonkeyPatch.context() as patch:
        old = Words.kept_words

        def noted(self: Words, words: Any, keys: Any, *, hashed: bool, **how: Any) -> Any:
            found.update({(self.number, word): hashed for word, _ in words})
            return old(self, words, keys, hashed=hashed, **how)

        patch.setattr(Words, "kept_words", noted)
        yield found


def _words(event: Effect) -> Iterator[tuple[str, Role, int]]:
    """The leaves of an event that have a word."""
    for leaf in leaves(type(event)):
        value = getattr(event, leaf.name)
        word = value.word if leaf.means in VALUES or leaf.means is Role.PLACE else value
        if isinstance(leaf.means, Role) and word != NO_WORD:
            yield leaf.name, leaf.means, word


def _modules() -> Iterator[Recorded]:
    for name, global_races in TWINS.items():
        path = next(path for path in KERNELS.glob(f"*/{name}.cu"))
        yield record(twin_file.kernel(path, False).ptx, name, global_races=global_races)
    yield record(OTHERS, global_races=True)


def test_words_are_hashed_as_their_roles_say(stored: dict[tuple[int, int], bool]) -> None:
    seen: set[type[Effect]] = set()
    wrong = []
    for module in _modules():
        for template in module.blocks.templates:
            for event in template.events:
                seen.add(type(event))
                for name, role, word in _words(event):
                    hashed = stored.get((template.number, word))
                    if (role in HASHED and not hashed) or (role in LOOSE and hashed):
                        wrong.append((type(event).__name__, name))
        stored.clear()
    assert set(wrong) == set()
    assert {effect.__name__ for effect in kinds.EFFECTS if effect not in seen} == NOT_RECORDED


@pytest.mark.parametrize("effect", kinds.EFFECTS, ids=lambda effect: effect.__name__)
def test_each_leaf_has_a_slot_of_its_own(effect: type[Effect]) -> None:
    slots = [leaf.slot for leaf in leaves(effect)]
    assert len(slots) == len(set(slots))
    assert all(leaf.slot in ROW for leaf in leaves(effect) if leaf.means is not bool)
