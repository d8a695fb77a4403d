# frozen_string_literal: true

require_relative "../http/server_suite"
require_relative "contestants"
require_relative "rows"

module Bench
  # Pages that compute: Heddle beside Puma and Falcon, two processes each.
  class ComputeSuite < HTTP::ServerSuite
    def name = "compute"

    def title = "Pages that compute"

    def rows = @rows ||= Compute::Rows.all

    def contestants = @contestants ||= Compute::Contestants.all

    def reference = Compute::Rows::PUMA

    def probe(contestant, ruby_flags:)
      return { failure: "the gem sqlite3 is not installed" } if Gem::Specification.find_all_by_name("sqlite3").empty?

      super
    end

    def sample(row, contestant, size, ruby_flags:)
      return super unless row.respond_to?(:share) && row.share

      super(row, contestant, { **size, capacity: capacity(row, ruby_flags) }, ruby_flags:)
    end

    private

    # All servers get the same share of it.
    def capacity(row, ruby_flags)
      @capacity ||= HTTP::Server.run(contestant(reference), ruby_flags:) { |server| row.capacity(server) }
    end
  end
end
