#!/usr/bin/env python3
"""The stand-in for the model providers, `fake_llm.py`, with what it does not know yet.

usage: model.py FAKE_LLM.PY [its options]

Codex 0.14x and later offer the tools of an MCP server as one tool of the type `namespace`, with functions in it, and take a
call of one only if it names its namespace.
"""
import importlib.util
import sys

spec = importlib.util.spec_from_file_location("fake_llm", sys.argv.pop(1))
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)


class Handler(fake.Handler):
    spaces = {}

    def say_responses(self, plan, body, stream):
        groups = [tool for tool in body.get("tools") or [] if tool.get("type") == "namespace"]
        self.spaces = {tool["name"]: group["name"] for group in groups for tool in group["tools"]}
        super().say_responses(plan, body, stream)

    def placed(self, item):
        space = self.spaces.get(item.get("name")) if item.get("type") == "function_call" else None
        return {**item, "namespace": space} if space else item

    def sse(self, obj, event=None):
        if isinstance(obj, dict) and "item" in obj:
            obj = {**obj, "item": self.placed(obj["item"])}
        elif isinstance(obj, dict) and obj.get("response", {}).get("output"):
            response = obj["response"]
            obj = {**obj, "response": {**response, "output": [self.placed(item) for item in response["output"]]}}
        super().sse(obj, event)


fake.Handler = Handler
fake.main()
