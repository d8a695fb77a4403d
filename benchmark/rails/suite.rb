# frozen_string_literal: true

require_relative "../http/suite"
require_relative "database"
require_relative "contestants"
require_relative "rows/page"

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
                                  path: "/slow-page", expected: LAST_LINE, connections: 64)
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
  end
end
