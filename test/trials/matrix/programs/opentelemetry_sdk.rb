# frozen_string_literal: true

require "opentelemetry/sdk"

exporter = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
OpenTelemetry::SDK.configure do |config|
  config.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(exporter))
end
tracer = OpenTelemetry.tracer_provider.tracer("matrix")
meeting = Meeting.new
clients do |number|
  tracer.in_span("outer #{number}") { meeting.wait && tracer.in_span("inner #{number}") { sleep 0.001 } }
end
spans = exporter.finished_spans.to_h { |span| [span.name, span] }
nested = (0...CLIENTS).all? { |number| spans["inner #{number}"].parent_span_id == spans["outer #{number}"].span_id }
proves("8 tasks have nested spans, each within its own", nested)
