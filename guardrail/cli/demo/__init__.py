"""`guardrail demo`: a small shop, a scripted agent, five guarded runs."""

from guardrail.cli.demo.command import demo

__all__ = ["demo"]
