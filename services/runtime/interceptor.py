"""One server interceptor that runs scopes around every call.

Owns: the wrapping of the four kinds of gRPC handler, and what a request that cannot be decoded ends
with. Does not own: what a scope does (errors in
`errors`, the drain in `server`, a service's own measurements). Enforces: WEIR-064 (a handler's
generator is closed when its call ends), WEIR-201 (nor does a request that cannot be decoded show
exception text).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, TypeAlias

import grpc
import grpc.aio

from contracts.errors import Reason, WeirError, failure

CallScope = Callable[[str, "grpc.aio.ServicerContext[Any, Any]"], AbstractAsyncContextManager[None]]
"""Entered before a handler with the full method name (`/weir.tts.v1.TtsService/Synthesize`) and the
call's context; sees the handler's exceptions, cancellation included; may abort."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Next = Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]]

_UNREADABLE = object()
"""Stands for a single request that could not be decoded, until the scopes are entered."""


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
        decode = handler.request_deserializer
        if decode is not None:
            decode = (_raising if handler.request_streaming else _marking)(decode)
        return make(behaviour, decode, handler.response_serializer)

    def _single(self, behaviour: Any, method: str) -> Any:
        async def scoped(request: Any, context: Any) -> Any:
            async with self._entered(method, context):
                _refuse_unreadable(request)
                return await behaviour(request, context)

        return scoped

    def _streaming(self, behaviour: Any, method: str) -> Any:
        async def scoped(request: Any, context: Any) -> None:
            async with self._entered(method, context):
                _refuse_unreadable(request)
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


def _marking(decode: Any) -> Any:
    """Return `decode` for a single request, which gRPC decodes before any scope is entered."""

    def decoded(data: bytes) -> Any:
        try:
            return decode(data)
        except Exception:  # a decoder's own; its text may quote the request
            return _UNREADABLE

    return decoded


def _raising(decode: Any) -> Any:
    """Return `decode` for a stream, which is decoded where the handler reads, within the scopes."""

    def decoded(data: bytes) -> Any:
        request = marked(data)
        _refuse_unreadable(request)
        return request

    marked = _marking(decode)
    return decoded


def _refuse_unreadable(request: Any) -> None:
    # WEIR-201: gRPC itself would answer with the text of the decoder's exception.
    if request is _UNREADABLE:
        raise WeirError(failure(Reason.INVALID_MESSAGE, "The request message cannot be decoded."))
