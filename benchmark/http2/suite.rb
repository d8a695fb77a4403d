# frozen_string_literal: true

require "tempfile"
require_relative "../http/suite"
require_relative "server"
require_relative "contestant"
require_relative "contestants/heddle"
require_relative "contestants/falcon"
require_relative "contestants/itsi"
require_relative "contestants/nginx"
require_relative "contestants/node"
require_relative "rows"

module Bench
  # HTTP/2 of Heddle's server beside that of other servers.
  class Http2Suite < HttpSuite
    CONTESTANTS = [HTTP2::Contestants::Heddle, HTTP2::Contestants::Falcon, HTTP2::Contestants::Itsi,
                   HTTP2::Contestants::Nginx, HTTP2::Contestants::Node].freeze

    def name = "http2"

    def title = "HTTP/2"

    def rows = @rows ||= HTTP2::Rows.all

    def contestants = @contestants ||= CONTESTANTS.flat_map(&:variants)

    def charts
      [{ name: "cpu", detail: :cpu_us, unit: "µs of CPU a request", title: "HTTP/2: CPU time" }]
    end

    # @see HTTP::ServerSuite
    def probe(contestant, ruby_flags:)
      version = contestant.version
      HTTP2::Server.run(contestant, ruby_flags:) { { version: } }
    rescue HTTP::Contestant::Unavailable => e
      { failure: e.message }
    end

    # @see HTTP::ServerSuite
    def sample(row, contestant, size, ruby_flags:)
      contestant = contestant.over_tls if row.tls?
      HTTP2::Server.run(contestant, ruby_flags:) { |server| row.measure(server, size) }
    end
  end
end
