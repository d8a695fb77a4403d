# frozen_string_literal: true

$LOAD_PATH.unshift(File.join(Bench::ROOT, "test"))
require "support/private_postgresql"

module Bench
  module Seeds
    module Rows
      # Eight clients whose requests wait for a second in PostgreSQL, by the unchanged driver.
      class Query < HTTP::Rows::Sleepers
        def initialize
          super(key: "query-8", title: "a query of 1 s in pg, 8 connections", seconds: 1, connections: 8,
                goals: [Goal.new(at_least: 7.9, unit: "req/s")])
        end

        def sizes(quick:) = super.merge(measured: quick ? 2 : 10)

        def around(_quick)
          raise Child::Failed, "needs PostgreSQL (Debian package postgresql)" unless PrivatePostgresql.programs

          require "pg"
          server = PrivatePostgresql.new
          yield({ places: { Application::POSTGRESQL => server.url } })
        ensure
          server&.stop
        end

        private

        def path = "/query/#{@seconds}"

        def expected = Application::OK
      end
    end
  end
end
