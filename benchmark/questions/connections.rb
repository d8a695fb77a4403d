# frozen_string_literal: true

module Bench
  module Questions
    # How many connections do fifty requests need that each use one for 20 ms of half a second?
    class Connections < Experiment
      REQUESTS = 50
      # The second path keeps the connection for the whole request.
      CASES = <<~RUBY
        when "/short"
          $pool ||= Heddle::Pool.new(max: 5) { Object.new }
          $pool.with { sleep 0.02 }
          sleep 0.48
        when "/long"
          $pool ||= Heddle::Pool.new(max: 5) { Object.new }
          $pool.with { sleep 0.5 }
      RUBY
      private_constant :REQUESTS, :CASES

      # @return [Array<String>]
      def find
        serve(CASES) do |server|
          { "for 20 ms" => "/short", "for the whole request" => "/long" }.map do |length, path|
            answers = nil
            time = elapsed { answers = get_all(server, [path] * REQUESTS) }
            "5 connections, each request keeps one #{length}: #{answers.compact.size} of #{REQUESTS} answered " \
              "in #{seconds(time)}"
          end
        end
      end
    end
  end
end
