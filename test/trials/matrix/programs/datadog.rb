# frozen_string_literal: true

require "datadog"

# Takes the traces, and sends none.
class Transport
  def send_traces(traces) = traces
  def stats = nil
end

Datadog.configure do |config|
  config.tracing.test_mode.enabled = true
  config.tracing.test_mode.writer_options = { transport: Transport.new }
  config.telemetry.enabled = false
  config.remote.enabled = false
  config.logger.instance = Logger.new(nil)
end
meeting = Meeting.new
pairs = clients do |number|
  Datadog::Tracing.trace("outer #{number}") do |outer|
    meeting.wait
    inner = Datadog::Tracing.trace("inner #{number}") { |span| sleep(0.001) && span }
    [outer.id, inner.parent_id, Datadog::Tracing.active_span.id, Datadog::Tracing.active_trace.id]
  end
end
proves("8 tasks have nested spans, each within its own", pairs.all? do |outer, parent, active|
  [outer] * 2 == [parent, active]
end)
proves("each task has its own trace", pairs.map(&:last).uniq.size == CLIENTS)
