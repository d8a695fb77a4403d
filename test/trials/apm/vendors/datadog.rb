# frozen_string_literal: true

require "datadog"

Datadog.configure do |c|
  c.agent.host = "127.0.0.1"
  c.agent.port = Integer(ENV.fetch("COLLECTOR_PORT"))
  c.tracing.instrument :rack, request_queuing: true
  c.telemetry.enabled = false
  c.remote.enabled = false
  c.crashtracking.enabled = false
  c.runtime_metrics.enabled = false
end

module Vendor
  def self.middleware = [Datadog::Tracing::Contrib::Rack::TraceMiddleware]

  def self.mark(name, mark) = Datadog::Tracing.active_span.set_tag(name.to_s, mark)
end
