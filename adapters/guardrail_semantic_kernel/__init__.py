"""Semantic Kernel: `guarded` for a kernel or an agent."""

from guardrail_semantic_kernel.kernels import guarded

__all__ = ["guarded"]
