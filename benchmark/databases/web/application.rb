# frozen_string_literal: true

require_relative "../../support/bench"
require_relative "../contestants"

module Bench
  module Databases
    # What the servers of the rows over HTTP run: the queries of a contestant, with its driver and pool.
    class Application
      # Short queries of a page.
      SHORT = 20
      # What the pages say.
      PAGE = "#{SHORT} items\n".freeze
      WAITED = "waited\n"
      ITEM = "an item\n"
      # Seconds.
      WAIT = 0.05
      # Seconds of a query that clients don't wait for.
      STUCK = 2
      TEXT = { "content-type" => "text/plain" }.freeze
      private_constant :TEXT

      # @return [Application]
      def self.from_environment
        key, place, connections = ENV.values_at("BENCH_CONTESTANT", "BENCH_PLACE", "BENCH_CONNECTIONS")
        contestant = Contestants.all.find { |one| one.key == key }
        contestant.prepare_driver
        contestant.open(JSON.parse(place, symbolize_names: true), connections: Integer(connections),
                                                                  patience: Drivers::SERVED_PATIENCE)
        new(contestant)
      end

      # @param contestant [Contestant]
      def initialize(contestant)
        @contestant = contestant
      end

      def call(env)
        case env["PATH_INFO"]
        when "/page" then [200, TEXT.dup, [page]]
        when "/wait" then [200, TEXT.dup, [wait(Queries.sleep(WAIT, database))]]
        when "/stuck" then [200, TEXT.dup, [wait(Queries.stuck(STUCK, database))]]
        when "/item" then [200, TEXT.dup, [item]]
        else [200, TEXT.dup, ["Hello, world!\n"]]
        end
      end

      private

      # One long query and the short ones, one after the other.
      def page
        ask(Queries::LONG, Queries::NONE)
        1.upto(SHORT) { |id| ask(Queries.short(id), id) }
        PAGE
      end

      def wait(query)
        ask(query, Queries.slept(database))
        WAITED
      end

      def item
        ask(Queries.short(1), 1)
        ITEM
      end

      def database = @contestant.database

      def ask(query, expected)
        answer = @contestant.query(query)
        raise "a query answered #{answer} instead of #{expected}" unless answer == expected
      end
    end
  end
end
