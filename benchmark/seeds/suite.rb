# frozen_string_literal: true

require_relative "../http/server_suite"
require_relative "contestants"
require_relative "rows"

module Bench
  # Published figures that no other benchmark repeats: what the requests of those systems do, in one application.
  class SeedsSuite < HTTP::ServerSuite
    def name = "seeds"

    def title = "Published figures that no other benchmark repeats"

    def rows = @rows ||= Seeds::Rows.all

    def contestants = @contestants ||= Seeds::Contestants.all

    # @param row [Row]
    # @param size [Hash] with `places:` for the application, where the row has some
    # @return [Hash]
    # @raise [Child::Failed]
    def sample(row, contestant, size, ruby_flags:)
      super(row, contestant.with_places(size.fetch(:places, {})), size, ruby_flags:)
    end
  end
end
