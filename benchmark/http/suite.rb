# frozen_string_literal: true

require_relative "application"
require_relative "contestant"
require_relative "server"
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
  class HttpSuite < Suite
    CONTESTANTS = [HTTP::Contestants::Heddle, HTTP::Contestants::Falcon, HTTP::Contestants::Puma,
                   HTTP::Contestants::Itsi, HTTP::Contestants::Iodine, HTTP::Contestants::Agoo,
                   HTTP::Contestants::Nginx, HTTP::Contestants::Sender].freeze

    # Ten thousand connections are more than a process is allowed where nobody has asked for more.
    def initialize
      super
      _, most = Process.getrlimit(Process::RLIMIT_NOFILE)
      Process.setrlimit(Process::RLIMIT_NOFILE, most)
    end

    def name = "http"

    def title = "HTTP servers for Ruby"

    def rows = @rows ||= HTTP::Rows.all

    def contestants = @contestants ||= CONTESTANTS.flat_map(&:variants)

    def reference = "nginx"

    def legend = ""

    def charts
      [{ name: "cpu", detail: :cpu_us, unit: "µs of CPU a request", title: "HTTP servers for Ruby: CPU time" },
       { name: "memory", detail: :pss_mb, unit: "MB", title: "HTTP servers for Ruby: memory after the load" }]
    end

    # @param ruby_flags [Array<String>]
    # @return [Hash] :version; that it starts and answers
    # @raise [Child::Failed]
    def probe(contestant, ruby_flags:)
      version = contestant.version
      HTTP::Server.run(contestant, ruby_flags:) { { version: } }
    rescue HTTP::Contestant::Unavailable => e
      { failure: e.message }
    end

    # @param row [Row]
    # @param size [Hash]
    # @return [Hash]
    # @raise [Child::Failed]
    def sample(row, contestant, size, ruby_flags:)
      HTTP::Server.run(contestant, ruby_flags:) { |server| row.measure(server, size) }
    end
  end
end
