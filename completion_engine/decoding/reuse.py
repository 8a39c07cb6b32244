"""What an earlier completion already says about a prompt. Runs nothing."""

from __future__ import annotations

from completion_engine.decoding.slots import Slot
from completion_engine.drafting.draft import DraftToken
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.written import Written
from completion_engine.target_model.chunks import ChunkRule

Known = tuple[list[int], list[DraftToken | None]]


def known_after(
    slot: Slot, prompt: Prompt, written: Written, setting: tuple[float, int], chunks: ChunkRule
) -> Known:
    """Tokens that the slot's last completion shows to follow `prompt`, and where they came from.

    Typing along a suggestion leaves the same tokens in front and only tightens what the next one must
    spell, so the target's earlier pick, the best of a wider choice, is still the best; of equals too, since
    everywhere the lowest token is picked. Where the prompt is computed by other chunks than the one before,
    its bits are others, and nothing is known.
    """
    num_prompt = len(prompt.tokens)
    same_text = slot.setting == setting and slot.path[:num_prompt] == list(prompt.tokens)
    same_chunks = chunks.num_chunked(num_prompt) == chunks.num_chunked(slot.num_forced)
    if num_prompt < slot.num_forced or not same_text or not same_chunks:
        return [], []
    typed = written.spell(slot.path[slot.num_forced : num_prompt]) + prompt.healed
    known = slot.path[num_prompt:]
    if not typed.startswith(slot.healed) or not written.follows(known):
        return [], []
    return known, slot.origins[num_prompt - slot.num_forced :]
