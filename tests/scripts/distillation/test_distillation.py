"""Training a drafter: which code counts, what windows look like, and that stopping loses nothing."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import Tensor

from completion_engine.drafting.distilled import DrafterFiles, load_distilled
from completion_engine.drafting.drafter_network import DistilledNetwork
from completion_engine.errors import UserError
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.target_model.kv_cache import CacheShape
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.threads import ThreadGovernor, thread_counts
from scripts.distillation import DistillPlan, TrainingPlan
from scripts.distillation.collection import (
    Collection,
    CollectionPlan,
    Corpus,
    Shards,
    draw_windows,
    is_held_out,
    read_corpus,
    run_window,
)
from scripts.distillation.evaluation import Acceptance, Examination, measure_acceptance
from scripts.distillation.pipeline import (
    WORK,
    card_of,
    distill,
    fit_preview,
    frequent_tokens,
    shape_for,
)
from scripts.distillation.trained_network import Batch, DrafterNetwork
from scripts.distillation.training import DistillationLoss, Trainer

WINDOW = 96
TRAINING = TrainingPlan(num_steps=12, batch_windows=4, checkpoint_steps=4, num_common=64, num_others=32)
FIXED = dataclasses.replace(TRAINING, num_steps=1, matrix_rate=0.0, other_rate=0.0)


@pytest.fixture(scope="module")
def tokenizer(tiny_model_dir: Path) -> Tokenizer:
    return load_tokenizer(tiny_model_dir)


@pytest.fixture(scope="module")
def target(tiny_model_dir: Path) -> LanguageModel:
    return load_language_model(tiny_model_dir, "cpu", "auto", 512)


def say_nothing(what: str, done: int, total: int) -> None:
    pass


def drawn_by(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret


def source(number: int) -> str:
    lines = [
        f"def function_{number}_{at}(left, right):\n    return left + right * {at}\n" for at in range(40)
    ]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    for number in range(60):
        place = folder / f"project-{number % 3}" / f"module_{number}.py"
        place.parent.mkdir(exist_ok=True)
        place.write_text(source(number))
    (folder / "project-0" / ".env").write_text("TOKEN=" + "a1b2" * 400)
    (folder / "project-0" / "short.py").write_text("x = 1\n")
    return folder


@pytest.fixture(scope="module")
def corpus(code: Path) -> Corpus:
    return read_corpus(code, None, say_nothing)


@pytest.fixture(scope="module")
def plan(target: LanguageModel) -> DistillPlan:
    return DistillPlan(
        "tiny", num_tokens=16 * WINDOW, window_tokens=WINDOW, vocabulary=300, training=TRAINING,
        num_measured=2, tokens_measured=8,
    )  # fmt: skip


@pytest.fixture(scope="module")
def trained(
    code: Path,
    plan: DistillPlan,
    target: LanguageModel,
    tokenizer: Tokenizer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    out = tmp_path_factory.mktemp("out")
    distill(code, out, plan, (target, tokenizer), say_nothing)
    return out


@pytest.fixture
def shards(trained: Path) -> Shards:
    return Shards(sorted((trained / WORK).glob("shard-*.safetensors")))


def make_trainer(
    trained: Path, target: LanguageModel, folder: Path, plan: TrainingPlan = TRAINING, seed: int = 0
) -> Trainer:
    files = DrafterFiles.read(trained)
    torch.manual_seed(seed)
    tokens = files.tokens.long()
    return Trainer(
        DrafterNetwork(files.shape, target), target.decoder.head_rows(tokens), tokens, plan, folder
    )


def test_no_file_is_both_trained_on_and_measured(corpus: Corpus) -> None:
    assert corpus.train
    assert corpus.held_out
    assert set(corpus.train).isdisjoint(corpus.held_out)
    assert len(corpus.train) + len(corpus.held_out) == 60


def test_secrets_and_scraps_are_not_read(corpus: Corpus) -> None:
    assert not any("a1b2a1b2" in text or text == "x = 1\n" for text in (*corpus.train, *corpus.held_out))


def test_about_a_twentieth_is_held_out() -> None:
    num_held_out = sum(is_held_out(f"package/module_{at}.py") for at in range(4000))
    assert 120 < num_held_out < 280


def test_a_folder_of_its_own_is_measured_whole(code: Path, tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text(source(99))
    corpus = read_corpus(code, tmp_path, say_nothing)
    assert corpus.held_out == (source(99),)
    assert len(corpus.train) == 60


def test_too_little_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="too little source code"):
        read_corpus(tmp_path, None, say_nothing)


def test_a_window_is_a_prompt_and_what_fills_its_hole(corpus: Corpus, tokenizer: Tokenizer) -> None:
    fim = tokenizer.fim
    assert fim is not None
    windows = draw_windows(corpus.train, tokenizer, WINDOW, drawn_by(1))
    for window in (next(windows) for _ in range(50)):
        tokens = list(window.tokens)
        assert len(tokens) <= WINDOW
        assert tokens[0] == fim.prefix
        assert tokens[window.num_prompt - 1] == fim.middle
        suffix = tokens.index(fim.suffix)
        prefix, middle = tokenizer.decode(tokens[1:suffix]), tokenizer.decode(tokens[window.num_prompt :])
        assert any(prefix + middle in text for text in corpus.train)


def test_a_middle_ends_only_where_it_is_whole(corpus: Corpus, tokenizer: Tokenizer) -> None:
    fim = tokenizer.fim
    assert fim is not None
    windows = draw_windows(corpus.train, tokenizer, WINDOW, drawn_by(2))
    for window in (next(windows) for _ in range(50)):
        tokens = list(window.tokens)
        if tokens[-1] in tokenizer.end_ids:
            suffix = tokens[tokens.index(fim.suffix) + 1 : window.num_prompt - 1]
            joined = tokenizer.decode(tokens[window.num_prompt : -1]) + tokenizer.decode(suffix)
            assert any(joined in text for text in corpus.train)


def test_a_window_of_dense_text_is_no_longer_than_asked(tokenizer: Tokenizer) -> None:
    windows = draw_windows(["0123456789\n" * 200], tokenizer, WINDOW, drawn_by(5))
    assert max(len(next(windows).tokens) for _ in range(100)) <= WINDOW


@pytest.mark.parametrize(
    ("hidden_size", "head_size", "mlp_size"),
    [(896, 64, 2048), (1536, 128, 2432), (4096, 128, 4096)],
    ids=["0.5b", "1.5b", "larger"],
)
def test_a_drafter_is_as_wide_as_may_be_shipped(hidden_size: int, head_size: int, mlp_size: int) -> None:
    shape = CacheShape(24, 2, head_size, hidden_size, 64, torch.bfloat16, torch.device("cpu"))
    assert shape_for(shape, 151_936, 16, 16_384).mlp_size == mlp_size


def test_a_tokenizer_without_markers_gives_plain_text(
    corpus: Corpus, tiny_model_dir: Path, tmp_path: Path
) -> None:
    text = (tiny_model_dir / "tokenizer.json").read_text().replace("fim_", "fun_")
    (tmp_path / "tokenizer.json").write_text(text)
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.fim is None
    window = next(draw_windows(corpus.train, tokenizer, WINDOW, drawn_by(3)))
    assert any(tokenizer.decode(list(window.tokens)) in text for text in corpus.train)


def test_states_of_a_window_are_what_the_target_caches(
    corpus: Corpus, target: LanguageModel, tokenizer: Tokenizer
) -> None:
    window = next(draw_windows(corpus.train, tokenizer, WINDOW, drawn_by(4)))
    found = run_window(window, target, CollectionPlan("tiny", 0, WINDOW, 1))
    assert found["tokens"].shape == (WINDOW,)
    assert found["hidden"].shape == (WINDOW, target.cache_shape.hidden_size)
    num_real = int((found["tokens"] >= 0).sum())
    assert found["tokens"][:num_real].tolist() == list(window.tokens)


def test_a_collection_goes_on_where_it_stopped(
    corpus: Corpus, target: LanguageModel, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    plan = CollectionPlan("tiny", 1, 48, 1)
    parts = target, tokenizer

    def collect(folder: Path, num_windows: int) -> list[bytes]:
        collection = Collection(folder, plan)
        collection.collect(corpus.train, num_windows * 48, parts, say_nothing)
        return [path.read_bytes() for path in collection.shards]

    first = collect(tmp_path / "apart", 16)
    assert len(first) == 1
    both = collect(tmp_path / "apart", 32)
    assert both[0] == first[0] != both[1]
    assert both == collect(tmp_path / "together", 32)


def test_shards_of_other_plans_are_not_mixed(tmp_path: Path) -> None:
    Collection(tmp_path, CollectionPlan("tiny", 1, 48, 1))
    with pytest.raises(UserError, match="other code, another target or other settings"):
        Collection(tmp_path, CollectionPlan("tiny", 2, 48, 1))


def test_padding_is_told_from_tokens(shards: Shards) -> None:
    batch = shards.batch(range(len(shards)), torch.device("cpu"))
    assert batch.tokens.shape == batch.is_real.shape == (16, WINDOW)
    assert int(batch.tokens.min()) >= 0
    assert batch.is_real[:, 0].all()
    assert shards.num_positions == int(batch.is_real.sum())


def test_a_batch_is_no_longer_than_its_windows(shards: Shards) -> None:
    number = min(range(len(shards)), key=shards.lengths.__getitem__)
    alone = shards.batch([number], torch.device("cpu"))
    whole = shards.batch(range(len(shards)), torch.device("cpu"))
    assert alone.length < shards.lengths[number] + 32
    assert alone.hidden.shape[1] == alone.keys.shape[2] == alone.values.shape[2] == alone.length
    assert torch.equal(alone.hidden[0], whole.hidden[number, : alone.length])
    assert torch.equal(alone.values[0], whole.values[number, :, : alone.length])


def test_an_epoch_takes_every_window_once_and_long_ones_together(
    trained: Path, target: LanguageModel, tmp_path: Path
) -> None:
    drawn = drawn_by(5)
    lengths = [drawn.randrange(10, 1000) for _ in range(130)]
    trainer = make_trainer(trained, target, tmp_path, dataclasses.replace(TRAINING, num_steps=66))
    batches = []
    for batch in trainer._order(lengths):
        batches.append(batch)
        trainer.num_done += 1
    assert len(batches) == 66
    for epoch in (batches[:33], batches[33:]):
        assert sorted(window for batch in epoch for window in batch) == list(range(130))
    assert batches[:33] != batches[33:]
    padding = sum(max(map(lengths.__getitem__, batch)) * len(batch) for batch in batches) / 2 - sum(lengths)
    assert padding < 0.1 * sum(lengths)


def test_frequent_tokens_come_first_and_ends_are_among_them(corpus: Corpus, tokenizer: Tokenizer) -> None:
    tokens = frequent_tokens(corpus, tokenizer, 30, say_nothing).tolist()
    assert len(tokens) == len(set(tokens)) == 30
    assert tokenizer.end_ids <= set(tokens)
    counts = Counter(token for text in corpus.train for token in tokenizer.encode(text))
    code = [counts[token] for token in tokens if token not in tokenizer.end_ids]
    assert code == sorted(counts.values(), reverse=True)[: len(code)]


def test_the_loss_has_the_gradient_of_cross_entropy() -> None:
    torch.manual_seed(0)
    logits = torch.randn(3, 5, 7, requires_grad=True)
    wanted = torch.randn(3, 5, 7).softmax(-1)
    weights = (torch.rand(3, 5) > 0.3).float()
    expected = (-(wanted * logits.log_softmax(-1)).sum(-1) * weights).sum() / weights.sum()
    (gradient,) = torch.autograd.grad(expected, logits)
    found = DistillationLoss.apply(logits, wanted, weights)
    (ours,) = torch.autograd.grad(found, logits)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(ours, gradient)


def test_the_linear_beginning_predicts_linear_states(trained: Path, target: LanguageModel) -> None:
    """States that follow linearly from the ones before are found by the closed form alone."""
    shape = DrafterFiles.read(trained).shape
    torch.manual_seed(1)
    network = DrafterNetwork(shape, target)
    size, length = shape.hidden_size, 64
    turn, _ = torch.linalg.qr(torch.randn(size, size))
    rows = [torch.nn.functional.normalize(torch.randn(40, size), dim=-1) * size**0.5]
    for _ in range(length - 1):
        rows.append(rows[-1] @ turn)
    hidden = torch.stack(rows, 1)
    tokens = torch.randint(0, 500, (40, length))
    memory = torch.zeros(40, shape.num_kv_heads, length, shape.head_size)
    batch = Batch(tokens, hidden, memory, memory, torch.ones(40, length, dtype=torch.bool))
    network.fit_linear([batch])
    with torch.no_grad():
        found = network.step(tokens[:, 1:], hidden[:, :-1], batch, torch.arange(1, length))
    assert torch.nn.functional.cosine_similarity(found, hidden[:, 1:], dim=-1).mean() > 0.98


def test_training_brings_the_drafter_nearer_to_its_target(
    trained: Path, target: LanguageModel, shards: Shards, tmp_path: Path
) -> None:
    plan = dataclasses.replace(TRAINING, num_steps=60, short_share=0.5)
    trainer = make_trainer(trained, target, tmp_path, plan)
    losses = trainer.run(shards, say_nothing)
    assert len(losses) == trainer.num_done == 60
    assert losses[-1] < 0.8 * losses[0]


def test_training_that_was_stopped_ends_where_it_would_have(
    trained: Path, target: LanguageModel, shards: Shards, tmp_path: Path
) -> None:
    whole = make_trainer(trained, target, tmp_path / "whole")
    whole.run(shards, say_nothing)

    class StoppedError(Exception):
        pass

    def stop(what: str, done: int, total: int) -> None:
        if done == 6:
            raise StoppedError

    with pytest.raises(StoppedError):
        make_trainer(trained, target, tmp_path / "parts").run(shards, stop)
    rest = make_trainer(trained, target, tmp_path / "parts", seed=7)
    assert len(rest.run(shards, say_nothing)) == TRAINING.num_steps - 4
    for name, weight in whole.network.weights.items():
        torch.testing.assert_close(rest.network.weights[name], weight)


def test_training_goes_on_from_a_drafter_that_was_trained_before(
    code: Path,
    trained: Path,
    plan: DistillPlan,
    target: LanguageModel,
    tokenizer: Tokenizer,
    tmp_path: Path,
) -> None:
    once_more = dataclasses.replace(plan, begin_with=trained, vocabulary=17, training=FIXED)
    found = distill(code, tmp_path, once_more, (target, tokenizer), say_nothing)
    begun = DrafterFiles.read(trained)
    assert found.files.shape == begun.shape
    assert torch.equal(found.files.tokens, begun.tokens.long())
    for name, weight in begun.weights.items():
        torch.testing.assert_close(found.files.weights[name], weight)
    assert "beginning with an earlier drafter" in card_of(found, once_more, code)
    folders = (trained / WORK, tmp_path / WORK)
    drawn = [Shards(sorted(folder.glob("shard-*"))).batch([0], target.device) for folder in folders]
    assert not torch.equal(drawn[0].tokens, drawn[1].tokens), "a further round sees other windows"


def test_a_drafter_of_another_target_is_no_beginning(
    code: Path,
    trained: Path,
    plan: DistillPlan,
    target: LanguageModel,
    tokenizer: Tokenizer,
    tmp_path: Path,
) -> None:
    begun = DrafterFiles.read(trained)
    other = dataclasses.replace(begun, shape=dataclasses.replace(begun.shape, num_layers=99))
    other.save(tmp_path / "other")
    with pytest.raises(UserError, match="made for another target"):
        distill(
            code,
            tmp_path / "out",
            dataclasses.replace(plan, begin_with=tmp_path / "other"),
            (target, tokenizer),
            say_nothing,
        )
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_of_other_settings_is_refused(
    trained: Path, target: LanguageModel, shards: Shards
) -> None:
    plan = dataclasses.replace(TRAINING, num_steps=99)
    with pytest.raises(UserError, match="other settings"):
        make_trainer(trained, target, trained / WORK, plan).run(shards, say_nothing)


def test_a_preview_spends_its_rank_on_the_states_that_the_drafter_makes(
    trained: Path, target: LanguageModel, shards: Shards
) -> None:
    files = DrafterFiles.read(trained)
    network = DrafterNetwork(files.shape, target)
    network.take(files.weights)
    head = target.decoder.head_rows(files.tokens.long()).float()
    batch = shards.batch([0], target.device)
    place = torch.arange(1, batch.length)
    with torch.no_grad():
        states = network.step(batch.tokens[:, 1:], batch.hidden[:, :-1].float(), batch, place)

    def error(narrow: Tensor, widen: Tensor) -> float:
        return float(((states @ narrow.T @ widen.T - states) @ head.T).norm())

    fitted = fit_preview(network, [batch], head, 8)
    alone = torch.linalg.svd(head, full_matrices=False).Vh[:8]
    assert fitted.narrow.shape == alone.shape
    assert error(fitted.narrow, fitted.widen) < 0.8 * error(alone, alone.T)


def test_a_perfect_drafter_is_measured_as_perfect(
    corpus: Corpus, target: LanguageModel, tokenizer: Tokenizer, trained: Path
) -> None:
    class Oracle(DistilledNetwork):
        """Guesses by asking the target itself."""

        def __init__(self) -> None:
            pass

        def step(self, tokens, states, cache, position):  # noqa: ANN001, ANN202 - as in the base class
            held = list(cache.tokens)
            cache.rewind(min(cache.num_cached, position))
            logits = target.forward(tokens.tolist(), cache, 1)
            cache.keep(tokens.tolist())
            assert len(held) <= position
            return states, logits[:, : tokenizer.num_tokens]

    ids = torch.arange(tokenizer.num_tokens)
    examination = Examination(corpus.held_out, WINDOW, 2, 10)
    found = measure_acceptance(Oracle(), ids, (target, tokenizer), examination, say_nothing)
    assert found.conditional == [1.0] * len(found.num_tried)
    assert found.num_tried[0] > 4


def test_survival_is_the_product_of_what_is_conditional() -> None:
    found = Acceptance((10, 5, 2), (5, 2, 0), (1.0, 1.0, 1.0))
    assert found.conditional == [0.5, 0.4, 0.0]
    assert found.survival == [0.5, 0.2, 0.0]


def test_what_was_trained_drafts_for_its_target(
    trained: Path, target: LanguageModel, plan: DistillPlan
) -> None:
    drafter = load_distilled(trained, target)
    assert drafter.step_ms > 0
    files = DrafterFiles.read(trained)
    assert files.target == plan.target
    assert files.shape.memory_layer < target.cache_shape.num_layers
    assert all(temperature > 0 for temperature in files.temperatures)


def test_distilling_again_repeats_nothing_that_is_done(
    code: Path, trained: Path, plan: DistillPlan, target: LanguageModel, tokenizer: Tokenizer
) -> None:
    seen: list[tuple[str, int]] = []
    before = (trained / WORK / "shard-00000.safetensors").stat().st_mtime_ns
    weights = DrafterFiles.read(trained).weights
    found = distill(code, trained, plan, (target, tokenizer), lambda what, done, _: seen.append((what, done)))
    assert (trained / WORK / "shard-00000.safetensors").stat().st_mtime_ns == before
    assert "Training" not in {what for what, _ in seen}
    assert all(torch.equal(weights[name], weight) for name, weight in found.files.weights.items())


def test_training_takes_the_threads_that_torch_does_without_in_a_pass(
    code: Path,
    plan: DistillPlan,
    target: LanguageModel,
    tokenizer: Tokenizer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, set[int]] = {}
    monkeypatch.setattr(target, "governor", ThreadGovernor({1: 1.0}))
    monkeypatch.setattr(target.decoder, "computes_in_torch", False)

    def note(what: str, _done: int, _total: int) -> None:
        seen.setdefault(what, set()).add(torch.get_num_threads())

    training = dataclasses.replace(plan.training, num_steps=2)
    short = dataclasses.replace(plan, training=training)
    distill(code, tmp_path, short, (target, tokenizer), note)
    assert 1 in seen["Running the target"]
    assert seen["Training"] == {max(thread_counts())}


def test_the_card_names_code_figures_and_licence(
    code: Path, trained: Path, plan: DistillPlan, target: LanguageModel, tokenizer: Tokenizer
) -> None:
    found = distill(code, trained, plan, (target, tokenizer), say_nothing)
    card = card_of(found, plan, code)
    wanted = [
        "license: apache-2.0",
        "project-0, project-1, project-2",
        f"{found.num_positions:,} tokens in windows",
        f"| 1 | {found.acceptance.num_tried[0]:,} |",
    ]
    assert [text for text in wanted if text not in card] == []
