# frozen_string_literal: true

ENV["NEW_RELIC_LOG"] = File::NULL
ENV["NEW_RELIC_MONITOR_MODE"] = "false"
require "newrelic_rpm"

NewRelic::Agent.manual_start(license_key: "0" * 40, app_name: "matrix", monitor_mode: false, agent_enabled: true)
meeting = Meeting.new
tracer = NewRelic::Agent::Tracer
pairs = clients do |number|
  tracer.in_transaction(name: "outer #{number}", category: :task) do
    meeting.wait
    segment = tracer.start_segment(name: "inner #{number}")
    sleep 0.001
    segment.finish
    [tracer.current_transaction.best_name, segment.transaction.best_name, segment.transaction.segments.size]
  end
end
own = pairs.each_with_index.all? do |pair, number|
  pair.first(2).all? { |name| name.end_with?("outer #{number}") }
end
proves("8 tasks have a transaction each, with segments of its own", own)
