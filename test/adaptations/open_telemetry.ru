# frozen_string_literal: true

require "json"
require "opentelemetry-sdk"

# Keeps the attributes of ended spans, by the spans' names.
SPANS = {} # rubocop:disable Style/MutableConstant
class Recorder < OpenTelemetry::SDK::Trace::SpanProcessor
  def on_finish(span) = SPANS[span.name] = span.to_span_data.attributes
end
OpenTelemetry.logger = Logger.new(nil)
OpenTelemetry::SDK.configure { |config| config.add_span_processor(Recorder.new) }
TRACER = OpenTelemetry.tracer_provider.tracer("test")

run(lambda { |env|
  next [200, {}, [JSON.generate(SPANS)]] if env["PATH_INFO"] == "/spans"

  TRACER.in_span("request", kind: :server, attributes: { "own" => 1 }) do
    TRACER.in_span("inner") { sleep 0.05 }
    [200, {}, ["a"]]
  end
})
