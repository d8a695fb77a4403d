# frozen_string_literal: true

require_relative "../http/suite"
require_relative "database"
require_relative "contestants"
require_relative "rows/page"
require_relative "rows/paced"

module Bench
  # A page of a Rails application, by Heddle, Puma and Falcon.
  class RailsSuite < HttpSuite
    LAST_LINE = %r{100 notes, the newest note 99.*note 19<.*</html>}m
    private_constant :LAST_LINE

    def name = "rails"

    def title = "A Rails 8 page over PostgreSQL"

    def rows
      @rows ||= [
        RailsPage::Rows::Page.new(key: "page", title: "three queries and a page, 16 clients", path: "/page",
                                  expected: LAST_LINE, connections: 16),
        RailsPage::Rows::Page.new(key: "slow-page", title: "the same after a wait of 50 ms, 64 clients",
                                  path: "/slow-page", expected: LAST_LINE, connections: 64),
        RailsPage::Rows::Paced.new(key: "board", title: "40 partials, 30 queries, 2 workers, at 60 % of Puma's most",
                                   path: "/board", expected: %r{newest note 99.*</html>}m, workers: 2, connections: 64)
      ]
    end

    def contestants = @contestants ||= RailsPage::Contestants.all

    def reference = "puma"

    def charts
      [{ name: "memory", detail: :pss_mb, unit: "MB", title: "A Rails 8 page over PostgreSQL: memory after the load" }]
    end

    def probe(contestant, ruby_flags:)
      return { failure: "PostgreSQL is not installed" } unless RailsPage::Database.installed?

      super
    end

    def sample(row, contestant, size, ruby_flags:)
      return super unless row.respond_to?(:capacity)

      super(row, row.equip(contestant), { **size, capacity: capacity(row, ruby_flags) }, ruby_flags:)
    end

    private

    # Puma's. All get the same share of it.
    def capacity(row, ruby_flags)
      @capacity ||= begin
        puma = row.equip(contestants.find { |one| one.key == reference })
        HTTP::Server.run(puma, ruby_flags:) { |server| row.capacity(server) }
      end
    end
  end
end
