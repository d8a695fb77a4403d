# frozen_string_literal: true

require_relative "../http/server_suite"
require_relative "contestants"
require_relative "crowd"
require_relative "rows"

module Bench
  # What others' requests feel of one that blocks: Heddle, with its protections and without, beside other servers.
  class StallsSuite < HTTP::ServerSuite
    def name = "stalls"

    def title = "Requests that block, and what others feel of them"

    def rows = @rows ||= Stalls::Rows.all

    def contestants = @contestants ||= Stalls::Contestants.all

    def reference = "heddle-off"

    # @param row [Row]
    # @param size [Hash]
    # @return [Hash]
    # @raise [Child::Failed]
    def sample(row, contestant, size, ruby_flags:)
      serving = contestant.with_processes(row.processes).with_services(size.fetch(:environment, {}))
      super(row, serving, size, ruby_flags:)
    end
  end
end
