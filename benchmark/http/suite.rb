# frozen_string_literal: true

require_relative "application"
require_relative "server_suite"
require_relative "contestants/heddle"
require_relative "contestants/falcon"
require_relative "contestants/puma"
require_relative "contestants/itsi"
require_relative "contestants/iodine"
require_relative "contestants/agoo"
require_relative "contestants/nginx"
require_relative "contestants/sender"
require_relative "rows"

module Bench
  # Heddle's server beside other Ruby servers, and beside nginx.
  class HttpSuite < HTTP::ServerSuite
    CONTESTANTS = [HTTP::Contestants::Heddle, HTTP::Contestants::Falcon, HTTP::Contestants::Puma,
                   HTTP::Contestants::Itsi, HTTP::Contestants::Iodine, HTTP::Contestants::Agoo,
                   HTTP::Contestants::Nginx, HTTP::Contestants::Sender].freeze

    def name = "http"

    def title = "HTTP servers for Ruby"

    def rows = @rows ||= HTTP::Rows.all

    def contestants = @contestants ||= CONTESTANTS.flat_map(&:variants)

    def reference = "nginx"

    def charts
      [{ name: "cpu", detail: :cpu_us, unit: "µs of CPU a request", title: "HTTP servers for Ruby: CPU time" },
       { name: "memory", detail: :pss_mb, unit: "MB", title: "HTTP servers for Ruby: memory after the load" }]
    end
  end
end
