# frozen_string_literal: true

require "test_helper"
require_relative "support/client_case"

# OpenTelemetry's current span reaches the server. In a process of its own: loading OpenTelemetry changes the whole
# process.
class ClientTraceTest < ClientCase
  PROGRAM = <<~RUBY
    require "heddle"
    require "logger"
    require "opentelemetry-sdk"
    OpenTelemetry.logger = Logger.new(nil)
    OpenTelemetry::SDK.configure { |config| config.add_span_processor(OpenTelemetry::SDK::Trace::SpanProcessor.new) }
    http = Heddle::HTTP::Client.new(ARGV.first, proxy: nil)
    tracer = OpenTelemetry.tracer_provider.tracer("test")
    Heddle.run do
      Heddle.map(%w[one two]) do |name|
        tracer.in_span(name) { |span| http.get("/\#{span.context.hex_trace_id}/\#{span.context.hex_span_id}") }
      end
    end
    http.get("/without")
  RUBY

  def test_each_request_carries_the_span_of_its_task
    server = serve { |socket, _| socket.write(hello) }
    out, status = ruby(PROGRAM, server.url, flags: ["--enable=gems", "-r#{ROOT}/bin/support/gem_paths"])

    assert_predicate status, :success?, out
    requests = server.received.to_h { |request| [request.target, request["traceparent"]] }

    assert_nil requests.delete("/without")
    assert_equal 2, requests.size
    requests.each { |target, traceparent| assert_equal "00#{target.tr("/", "-")}-01", traceparent }
  end
end
