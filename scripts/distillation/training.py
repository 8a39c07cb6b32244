"""Training a drafter against its target's distribution, over drafts of growing length.

Matrices are trained with Muon, everything else with AdamW. Every draft of the batch begins at a true state;
from the second token on it goes on from the network's own states. Checkpoints let it go on after a stop.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from completion_engine.errors import UserError
from completion_engine.request import Progress
from scripts.distillation import TrainingPlan
from scripts.distillation.collection import Shards
from scripts.distillation.trained_network import Batch, DrafterNetwork

_CHECKPOINT = "checkpoint.safetensors"
_WARMUP_STEPS = 10
_INITIAL_BATCHES = 12
_LOGGED_OF_MEAN = 0.05
_SORTED_BATCHES = 16  # their windows are grouped by length, to compute little padding


class DistillationLoss(torch.autograd.Function):
    """Mean cross entropy of drafted logits with the target's distribution; makes its gradient at once."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor, weights: Tensor) -> Tensor:
        """logits, wanted [..., num_tokens]; weights [...] of the rows."""
        shares = logits.float()
        shares -= shares.logsumexp(-1, keepdim=True)
        weights = weights / weights.sum().clamp_(min=1)
        loss: Tensor = -(torch.linalg.vecdot(wanted, shares.to(wanted.dtype)).float() * weights).sum()
        ctx.save_for_backward(shares.exp_().sub_(wanted).mul_(weights[..., None]).to(logits.dtype))
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        """Through the logits only."""
        (saved,) = ctx.saved_tensors
        result: Tensor = saved * grads[0]
        return result, None, None


class Trainer:
    """A network on its way. `head` [num_tokens, hidden_size] are the rows of the tokens it can guess."""

    def __init__(
        self, network: DrafterNetwork, head: Tensor, tokens: Tensor, plan: TrainingPlan, folder: Path
    ) -> None:
        """`tokens` [num_tokens] are the ids it can guess, most frequent first; checkpoints go to `folder`."""
        self.network = network
        self.plan = plan
        self.num_done = 0
        self._head, self._tokens, self._folder = head, tokens, folder
        weights = list(network.weights.values())
        self._optimizers: list[torch.optim.Optimizer] = [
            torch.optim.Muon(
                [weight for weight in weights if weight.ndim == 2],
                lr=plan.matrix_rate,
                weight_decay=0.0,
                adjust_lr_fn="match_rms_adamw",
            ),
            torch.optim.AdamW(
                [weight for weight in weights if weight.ndim < 2], lr=plan.other_rate, weight_decay=0.0
            ),
        ]
        self._rates = (plan.matrix_rate, plan.other_rate)

    def run(self, shards: Shards, report: Progress, begun: Mapping[str, Tensor] | None = None) -> list[float]:
        """Train to the end of the plan; the running mean of the divergence after every step done here.

        Begins at the last checkpoint, or else with the weights `begun`, or else at a linear guess.
        """
        device = self._head.device
        if not self._restore():
            if begun is None:
                first = range(min(len(shards), _INITIAL_BATCHES * self.plan.batch_windows))
                self.network.fit_linear([shards.batch([number], device) for number in first])
            else:
                self.network.take(begun)
        losses: list[float] = []
        for numbers in self._order(shards.lengths):
            loss = self.step(shards.batch(numbers, device))
            losses.append(loss if not losses else losses[-1] + _LOGGED_OF_MEAN * (loss - losses[-1]))
            report("Training", self.num_done, self.plan.num_steps)
            if self.num_done % self.plan.checkpoint_steps == 0 or self.num_done == self.plan.num_steps:
                self._save()
        return losses

    def step(self, batch: Batch) -> float:
        """One step of both optimisers; the divergence of the first drafted token, in nats."""
        plan = self.plan
        progress = self.num_done / plan.num_steps
        num_drafted = 1 if progress < plan.short_share else plan.draft_tokens
        rate = min(1.0, (self.num_done + 1) / _WARMUP_STEPS) * (1.0 - progress)
        for optimizer, full in zip(self._optimizers, self._rates, strict=True):
            optimizer.param_groups[0]["lr"] = full * rate
        divergences = self.divergences(batch, num_drafted, self._candidates(batch))
        total = torch.stack([value * plan.depth_weight**depth for depth, value in enumerate(divergences)])
        total.sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        for optimizer in self._optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.num_done += 1
        return float(divergences[0].detach())

    def divergences(self, batch: Batch, num_drafted: int, candidates: Tensor) -> list[Tensor]:
        """Divergence from the target over the `candidates` (places in `tokens`), by depth of the draft."""
        head = self._head[candidates]
        with torch.no_grad():
            logs = (batch.hidden @ head.T).float().log_softmax(-1)
            wanted = logs.exp().to(head.dtype)
            entropy = -torch.linalg.vecdot(wanted, logs.to(head.dtype)).float()
        found: list[Tensor] = []
        with torch.autocast(head.device.type, torch.bfloat16, enabled=head.dtype == torch.bfloat16):
            for at, states in self.network.drafted(batch, num_drafted):
                logits = functional.linear(states, head)
                weights = batch.is_real[:, at].float()
                crossed: Tensor = DistillationLoss.apply(logits, wanted[:, at], weights)  # type: ignore[no-untyped-call]  # torch leaves it untyped
                least = (entropy[:, at] * weights).sum() / weights.sum().clamp(min=1)
                found.append(crossed - least)
        return found

    def _candidates(self, batch: Batch) -> Tensor:
        """Places in `tokens` that a step looks at; all of them where there are few."""
        num_tokens, device = len(self._tokens), self._tokens.device
        chosen = torch.isin(self._tokens, batch.tokens)
        chosen[: self.plan.num_common] = True
        others = torch.randperm(num_tokens, generator=self._generator())[: self.plan.num_others]
        chosen[others.to(device)] = True
        return chosen.nonzero()[:, 0]

    def _generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.plan.seed * 1_000_003 + self.num_done)

    def _order(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Numbers of the windows of every step that is left; `lengths` are those of all windows."""
        num_batches = -(-len(lengths) // min(self.plan.batch_windows, len(lengths)))
        while self.num_done < self.plan.num_steps:
            epoch, at = divmod(self.num_done, num_batches)
            for batch in self._epoch(lengths, epoch)[at:]:
                if self.num_done < self.plan.num_steps:
                    yield batch

    def _epoch(self, lengths: Sequence[int], number: int) -> list[list[int]]:
        """All windows in an order of this epoch's own, by batches of about equally long ones."""
        rng = random.Random(f"{self.plan.seed}/{number}")  # noqa: S311 - a reproducible order
        size = self.plan.batch_windows
        order = rng.sample(range(len(lengths)), len(lengths))
        groups = [
            order[at : at + _SORTED_BATCHES * size] for at in range(0, len(order), _SORTED_BATCHES * size)
        ]
        ordered = [window for group in groups for window in sorted(group, key=lengths.__getitem__)]
        batches = [ordered[at : at + size] for at in range(0, len(ordered), size)]
        rng.shuffle(batches)
        return batches

    def _save(self) -> None:
        """Weights and the optimisers' memory, all at once."""
        tensors = {f"network.{name}": w.detach() for name, w in self.network.weights.items()}
        for which, optimizer in enumerate(self._optimizers):
            for key, kept in optimizer.state_dict()["state"].items():
                tensors |= {f"optimizer.{which}.{key}.{name}": torch.as_tensor(v) for name, v in kept.items()}
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = self._folder / f"{_CHECKPOINT}.part"
        state = {"num_done": str(self.num_done), "plan": json.dumps(asdict(self.plan))}
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, unfinished, state)
        unfinished.replace(self._folder / _CHECKPOINT)

    def _restore(self) -> bool:
        """Go on from the last checkpoint, if there is one. Raises UserError for one of another plan."""
        path = self._folder / _CHECKPOINT
        if not path.is_file():
            return False
        with safe_open(path, framework="pt") as file:
            metadata_of_file = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        if json.loads(metadata_of_file["plan"]) != asdict(self.plan):
            raise UserError(
                f"Training in {self._folder} started with other settings.",
                advice=f"Use the same settings, or delete {path}.",
            )
        self.network.take({name: tensors[f"network.{name}"] for name in self.network.weights})
        kept: list[dict[int, dict[str, Tensor]]] = [{} for _ in self._optimizers]
        for full_name, tensor in tensors.items():
            if full_name.startswith("optimizer."):
                _, which, key, name = full_name.split(".")
                kept[int(which)].setdefault(int(key), {})[name] = tensor
        for optimizer, state in zip(self._optimizers, kept, strict=True):
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.num_done = int(metadata_of_file["num_done"])
        return True
