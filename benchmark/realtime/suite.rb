# frozen_string_literal: true

require_relative "../http/server_suite"
require_relative "server"
require_relative "contestants"
require_relative "rows"

module Bench
  # WebSockets of Heddle beside those of other servers.
  class RealtimeSuite < HTTP::ServerSuite
    CONTESTANTS = [Realtime::Contestants::Heddle, Realtime::Contestants::Iodine, Realtime::Contestants::Node,
                   Realtime::Contestants::Falcon, Realtime::Contestants::Cable,
                   Realtime::Contestants::HeddleCable, Realtime::Contestants::Floor].freeze

    def name = "realtime"

    def title = "WebSockets"

    def rows = @rows ||= Realtime::Rows.all

    def contestants = @contestants ||= CONTESTANTS.flat_map(&:variants)

    # Rows ask contestants how a client speaks with their application.
    def sample(row, contestant, size, ruby_flags:)
      return row.measure(size) if row.respond_to?(:alone?)

      contestant = contestant.with_processes(row.processes) unless row.processes == 1
      contestant = contestant.over_tls if row.tls?
      Realtime::Server.run(contestant, ruby_flags:) { |server| row.measure(server, contestant, size) }
    end

    def charts
      [{ name: "cpu", detail: :cpu_us, unit: "µs of CPU a message or handshake", title: "WebSockets: CPU time" }]
    end
  end
end
