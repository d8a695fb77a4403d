# frozen_string_literal: true

require_relative "../http/contestant"
require_relative "../http/server"
require_relative "contestants"
require_relative "crowd"
require_relative "rows"

module Bench
  # What others' requests feel of one that blocks: Heddle, with its protections and without, beside other servers.
  class StallsSuite < Suite
    def name = "stalls"

    def title = "Requests that block, and what others feel of them"

    def rows = @rows ||= Stalls::Rows.all

    def contestants = @contestants ||= Stalls::Contestants.all

    def reference = "heddle-off"

    def legend = ""

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
      HTTP::Server.run(contestant.with_processes(row.processes), ruby_flags:) { |server| row.measure(server, size) }
    end
  end
end
