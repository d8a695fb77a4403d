# frozen_string_literal: true

require "json"
require "net/http"
require "opentelemetry/sdk"
require "opentelemetry/instrumentation/rack"

# Instead of the exporter's protocol buffers, JSON: a span a line.
class LineExporter
  def export(spans, **)
    lines = spans.map { |span| JSON.generate(span.attributes) }
    Net::HTTP.post(URI("http://127.0.0.1:#{ENV.fetch("COLLECTOR_PORT")}/spans"), lines.join("\n"))
    OpenTelemetry::SDK::Trace::Export::SUCCESS
  end

  def force_flush(**) = OpenTelemetry::SDK::Trace::Export::SUCCESS
  def shutdown(**) = OpenTelemetry::SDK::Trace::Export::SUCCESS
end

OpenTelemetry::SDK.configure do |config|
  processor = OpenTelemetry::SDK::Trace::Export::BatchSpanProcessor
  config.add_span_processor(processor.new(LineExporter.new, schedule_delay: 500))
  config.use "OpenTelemetry::Instrumentation::Rack"
end

module Vendor
  def self.map(builder)
    builder.use(*OpenTelemetry::Instrumentation::Rack::Instrumentation.instance.middleware_args)
  end

  def self.mark(name, mark) = OpenTelemetry::Trace.current_span.set_attribute(name.to_s, mark)
end
