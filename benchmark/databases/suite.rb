# frozen_string_literal: true

require_relative "contestants"
require_relative "servers"
require_relative "rows/query_row"
require_relative "rows/mix"
require_relative "rows/disk_mix"
require_relative "rows/pages"
require_relative "rows/served_row"
require_relative "rows/web"
require_relative "rows/web_crowd"
require_relative "rows/web_abandoned"
require_relative "rows/delays"
require_relative "rows/crowd"
require_relative "rows/abandoned"
require_relative "rows/restart"
require_relative "rows/found_limit"

module Bench
  # Queries of real databases: what concurrency saves, and what happens when clients give up or the database goes away.
  class DatabasesSuite < Suite
    ROWS = [Databases::Rows::Mix, Databases::Rows::DiskMix, Databases::Rows::Pages, Databases::Rows::Web,
            Databases::Rows::Delays, Databases::Rows::Crowd, Databases::Rows::WebCrowd, Databases::Rows::Abandoned,
            Databases::Rows::WebAbandoned, Databases::Rows::Restart, Databases::Rows::FoundLimit].freeze

    def name = "databases"

    def title = "Queries of PostgreSQL and MariaDB"

    def rows = @rows ||= ROWS.flat_map(&:variants)

    def contestants = @contestants ||= Databases::Contestants.all

    def reference = "blocking"

    def legend = ", with the better of its drivers and pools"

    # @return [Hash]
    # @raise [Child::Failed]
    def sample(row, contestant, size, ruby_flags:)
      return super unless row.served?

      server = contestant.served(size.fetch(:place), connections: row.connections)
      HTTP::Server.run(server, ruby_flags:) { |running| row.measure(running, size) }
    rescue Gem::GemNotFoundException => e
      raise Child::Failed, e.message
    end
  end
end
