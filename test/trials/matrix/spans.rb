# frozen_string_literal: true

require "opentelemetry/sdk"

# Spans of the gems that OpenTelemetry instruments, as an application gets them.
module Spans
  # More than the pool has connections: a span must not follow its connection to another task.
  TASKS = 50
  EXPORTER = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new

  # @param name [String] of an instrumentation
  # @param options [Hash] its own
  # @return [void]
  def self.of(name, **options)
    OpenTelemetry.logger = Logger.new(nil)
    OpenTelemetry::SDK.configure do |config|
      config.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(EXPORTER))
      config.use(name, options)
    end
  end

  # Runs the block in 50 tasks of one loop, each in a span of its own, and looks for one span below each of these.
  #
  # @param attribute [String] of the library's spans
  # @yield [number] must make one span beside those of connecting; its attribute ends with the number
  # @return [void]
  def self.prove(attribute)
    tracer = OpenTelemetry.tracer_provider.tracer("matrix")
    Heddle.run { Heddle.map(0...TASKS) { |number| tracer.in_span("task #{number}") { yield number } } }
    all = EXPORTER.finished_spans
    nested = (0...TASKS).all? do |number|
      outer = all.find { |span| span.name == "task #{number}" }
      inner = all.select { |span| span.parent_span_id == outer.span_id && span.name != "connect" }
      inner.size == 1 && inner.first.attributes.fetch(attribute)[/\d+\z/] == number.to_s
    end
    proves("50 tasks, each with the library's span within its own", nested)
  end
end
