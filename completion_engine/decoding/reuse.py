"""What an earlier completion already says about a prompt. Runs nothing."""

from __future__ import annotations

from completion_engine.decoding.along import among_spelt, tokens_along
from completion_engine.decoding.chances import Chance, num_known
from completion_engine.decoding.slots import Setting, Slot
from completion_engine.drafting.draft import DraftToken
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.written import Written
from completion_engine.target_model.chunks import ChunkRule

Known = tuple[list[int], list[DraftToken | None], list[Chance]]


def known_after(  # noqa: PLR0913 - what is asked for, and what it may stand on
    slot: Slot, prompt: Prompt, written: Written, setting: Setting, chunks: ChunkRule, *, weighs: bool
) -> Known:
    """Tokens that the slot's last completion shows to follow `prompt`, whence they came, how likely they are.

    Typing along a suggestion leaves the same tokens in front and only tightens what the next one must
    spell, so the target's earlier pick, the best of a wider choice, is still the best; of equals too, since
    everywhere the lowest token is picked. With a repository's memory that pick, and all behind it, are those
    of the slot's own view of the repository. Where the prompt is computed by other chunks than the one
    before, its bits are others, and nothing is known. Nor is what nobody weighed, to who `weighs`.
    """
    num_prompt = len(prompt.tokens)
    same_chunks = chunks.num_chunked(num_prompt) == chunks.num_chunked(slot.num_forced)
    if slot.setting != setting or not same_chunks:
        return [], [], []
    known = tokens_along(slot.path, slot.num_forced, slot.healed, prompt, written)
    if known is None:
        return [], [], []
    num_typed = num_prompt - slot.num_forced
    chances = among_spelt(known, slot.chances[num_typed:], written.healing())
    num_usable = num_known(chances) if weighs else len(known)
    return known[:num_usable], slot.origins[num_typed:], chances
