"""OpenAI's clients, of a scripted model."""

from __future__ import annotations

import openai
from openai import AsyncOpenAI, OpenAI

from support.kits.stage import Script
from support.kits.wire import endpoint


def client(script: Script) -> OpenAI:
    http = openai.DefaultHttpxClient(trust_env=False, verify=False)
    return OpenAI(base_url=f"{endpoint(script)}/v1", api_key="none", max_retries=0, http_client=http)


def aclient(script: Script) -> AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=False)
    return AsyncOpenAI(base_url=f"{endpoint(script)}/v1", api_key="none", max_retries=0, http_client=http)
