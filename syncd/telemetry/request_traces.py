"""Send traces of requests to an OpenTelemetry collector, when one is set.

Law, tested: only the attributes named here leave the process. Memex has its own tracer provider, so no library adds
a span with the name of an unknown tool, or the text of an exception."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from index.errors import InvalidArgument
from index.tracing import OPENER, Span, Value

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as Recorded
    from opentelemetry.trace import Tracer

    from syncd.settings.logs_and_traces import TelemetrySettings

log = logging.getLogger(__name__)

# ruff: noqa: PLC0415 - the SDK is an extra, and is imported only where an exporter is set
ALLOWED: Final = frozenset(
    {
        *("http.request.method", "http.route", "http.response.status_code"),
        *("memex.request", "memex.key", "memex.tool", "memex.code", "memex.mode", "memex.kind", "memex.urgent"),
        *("memex.texts", "memex.pool", "memex.found", "memex.documents", "memex.chunks", "memex.embedded"),
    }
)
CARRIED: Final = ("traceparent", "tracestate")
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
FLUSH_S: Final = 5  # a failing collector does not keep the daemon from stopping
MISSING: Final = (
    "traces need OpenTelemetry's SDK, which is not installed: pip install 'memex-vault[otel]', "
    "or leave telemetry.traces and OTEL_EXPORTER_OTLP_ENDPOINT unset"
)


class Traces:
    """Holds a tracer and its exporter for the life of a daemon."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer: Tracer = provider.get_tracer("memex")

    @contextmanager
    def trace_request(self, carried: Mapping[str, str]) -> Iterator[Span]:
        """Open the span of a request; `carried` are its headers that name the parent trace."""
        from opentelemetry.trace import SpanKind

        with self._tracer.start_as_current_span(
            "request",
            context=_parent_context(carried),
            kind=SpanKind.SERVER,
            record_exception=False,
            set_status_on_exception=False,
        ) as recorded:
            if not recorded.is_recording():  # not sampled
                yield _Open(recorded)
                return
            opened = OPENER.set(self._open_span)
            try:
                yield _Open(recorded)
            finally:
                OPENER.reset(opened)

    @contextmanager
    def attach_parent(self, carried: Mapping[str, str]) -> Iterator[None]:
        """Make the block a part of the trace that `carried` names, unless the request already has a parent.

        An MCP message may name its parent in `_meta`, where no header can."""
        from opentelemetry import context
        from opentelemetry.trace import get_current_span

        here, parent = get_current_span(), _parent_context(carried)
        if parent is None or OPENER.get() is None or getattr(here, "parent", None) is not None:
            yield
            return
        token = context.attach(parent)
        try:
            yield
        finally:
            context.detach(token)

    def close(self) -> None:
        """Send the remaining spans, for a short time, and stop."""
        self._provider.force_flush(FLUSH_S * 1000)
        self._provider.shutdown()

    @contextmanager
    def _open_span(self, name: str, attributes: dict[str, Value]) -> Iterator[Span]:
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False, attributes=_allowed_attributes(attributes)
        ) as recorded:
            try:
                yield _Open(recorded)
            except BaseException as error:
                _mark_failed(recorded, type(error).__name__)
                raise


class _Open:
    """Wraps a span of the SDK, and accepts only allowed attributes."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded

    def note(self, **attributes: Value) -> None:
        if name := attributes.pop("name", None):
            self._recorded.update_name(str(name))
        if error := attributes.pop("error", None):
            _mark_failed(self._recorded, str(error))
        self._recorded.set_attributes(_allowed_attributes(attributes))


def open_traces(settings: TelemetrySettings, environ: Mapping[str, str], *, version: str) -> Traces | None:
    """Return the exporter that the settings or OpenTelemetry's own variables name; None when none is set.

    Raises InvalidArgument when the SDK is not installed."""
    if not settings.traces and not any(environ.get(name) for name in ENDPOINTS):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError as error:
        raise InvalidArgument(MISSING) from error
    logging.getLogger("opentelemetry").setLevel(logging.ERROR)  # one line for a lost batch, none for each retry
    # None: from its environment variables.
    endpoint = f"{settings.traces.rstrip('/')}/v1/traces" if settings.traces else None
    provider = TracerProvider(
        resource=Resource.create({"service.name": "memex", "service.version": version}),
        sampler=ParentBased(TraceIdRatioBased(settings.sample)),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=FLUSH_S)))
    log.info("traces are exported")
    return Traces(provider)


def _parent_context(carried: Mapping[str, str]) -> Any:
    """Return the context that W3C's headers name; None when there is no valid one."""
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers = {name: carried[name] for name in CARRIED if isinstance(carried.get(name), str)}
    context = TraceContextTextMapPropagator().extract(headers)
    return context if get_current_span(context).get_span_context().is_valid else None


def _allowed_attributes(attributes: Mapping[str, Value]) -> dict[str, Value]:
    """Return the allowed attributes, with short names expanded."""
    full = {name if "." in name else f"memex.{name}": value for name, value in attributes.items()}
    return {name: value for name, value in full.items() if name in ALLOWED}


def _mark_failed(recorded: Recorded, what: str) -> None:
    """Mark a span as failed with a word: an error's code, or the name of its class."""
    from opentelemetry.trace import Status, StatusCode

    recorded.set_status(Status(StatusCode.ERROR, what))
