"""One server interceptor that runs scopes around every call.

Owns: the wrapping of the four kinds of gRPC handler. Does not own: what a scope does (errors in
`errors`, the drain in `server`, a service's own measurements). Enforces: WEIR-064 (a handler's
generator is closed when its call ends).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, TypeAlias

import grpc
import grpc.aio

CallScope = Callable[[str, "grpc.aio.ServicerContext[Any, Any]"], AbstractAsyncContextManager[None]]
"""Entered before a handler with the full method name (`/weir.tts.v1.TtsService/Synthesize`) and the
call's context; sees the handler's exceptions, cancellation included; may abort."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Next = Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]]


class ScopeInterceptor(grpc.aio.ServerInterceptor):
    """Runs `scopes` around every call, the first one outermost."""

    def __init__(self, *scopes: CallScope) -> None:
        self._scopes = scopes

    async def intercept_service(
        self, continuation: _Next, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        """Return the method's handler with the scopes around it; None when there is no method."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        return self._wrap(handler, handler_call_details.method)

    def _wrap(self, handler: Handler, method: str) -> Handler:
        if handler.response_streaming:
            make = (
                grpc.stream_stream_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_stream_rpc_method_handler
            )
            behaviour = self._streaming(handler.stream_stream or handler.unary_stream, method)
        else:
            make = (
                grpc.stream_unary_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_unary_rpc_method_handler
            )
            behaviour = self._single(handler.stream_unary or handler.unary_unary, method)
        return make(behaviour, handler.request_deserializer, handler.response_serializer)

    def _single(self, behaviour: Any, method: str) -> Any:
        async def scoped(request: Any, context: Any) -> Any:
            async with self._entered(method, context):
                return await behaviour(request, context)

        return scoped

    def _streaming(self, behaviour: Any, method: str) -> Any:
        async def scoped(request: Any, context: Any) -> None:
            async with self._entered(method, context):
                responses = behaviour(request, context)
                if not hasattr(responses, "__aiter__"):
                    await responses  # the handler writes by itself
                    return
                # WEIR-064: a cancelled call must not leave the generator to the collector.
                async with aclosing(responses):
                    async for response in responses:
                        await context.write(response)

        return scoped

    @asynccontextmanager
    async def _entered(self, method: str, context: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for scope in self._scopes:
                await stack.enter_async_context(scope(method, context))
            yield
