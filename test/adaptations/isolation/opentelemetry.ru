# frozen_string_literal: true

# OpenTelemetry's current span, and its baggage.

require "opentelemetry-sdk"

EXPORTER = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
processor = OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(EXPORTER)
OpenTelemetry.logger = Logger.new(nil)
OpenTelemetry::SDK.configure { |config| config.add_span_processor(processor) }
TRACER = OpenTelemetry.tracer_provider.tracer("test")

run(lambda do |env|
  id = env["QUERY_STRING"]
  nobody = OpenTelemetry::Trace.current_span.equal?(OpenTelemetry::Trace::Span::INVALID)
  TRACER.in_span("request", attributes: { "id" => id }) do |outer|
    sleep 0.05
    TRACER.in_span("inner") do |inner|
      sleep 0.01
      right = nobody && OpenTelemetry::Trace.current_span.equal?(inner) && inner.parent_span_id == outer.context.span_id
      [200, {}, ["#{id}#{" wrong" unless right}"]]
    end
  end
end)
