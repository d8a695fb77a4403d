# frozen_string_literal: true

require_relative "../../http/native"

module Bench
  module RailsPage
    module Rows
      # How long a page takes where people ask for it at moments of their own. See http/native/paced.c.
      class Paced < HTTP::Rows::HTTPRow
        WARM_UP = 10 # seconds, in which a server may refork its workers
        # Of what Puma can answer at most.
        LOAD = 0.6

        # @param path [String] the address
        # @param expected [Regexp] the answer
        # @param workers [Integer] processes that serve
        def initialize(path:, expected:, workers:, **)
          super(**)
          @path = path
          @expected = expected
          @workers = workers
        end

        def unit = "ms (p99)"

        def details = %i[p50_ms max_ms rate cpu_us errors pss_mb]

        def shown = %i[p50_ms max_ms pss_mb]

        def sizes(quick:) = { warm_up: quick ? 3 : WARM_UP, measured: quick ? 3 : 15 }

        # @param contestant [HTTP::Contestant]
        # @return [HTTP::Contestant] the same with the processes of this row
        def equip(contestant) = contestant.with_processes(@workers)

        # @param server [HTTP::Server]
        # @return [Float] requests a second that it can answer at most
        def capacity(server)
          server.check(@path, expected: @expected)
          2.times.map { Wrk.run("#{server.url}#{@path}", connections: 16, seconds: 4, core: nil).rate }.last
        end

        # @param server [HTTP::Server]
        # @param size [Hash] with :capacity, that of the server by which the load is measured
        # @return [Hash] the sample
        def measure(server, size)
          server.check(@path, expected: @expected)
          rate = size[:capacity] * LOAD
          before = nil
          answers = HTTP::Native.run("paced", server.port, @path, connections, rate, size[:warm_up] * 1_000,
                                     size[:measured] * 1_000) do |said, _|
            said.call
            before = server.tree.cpu_seconds
            said.call
          end
          sample(server, answers, rate, before)
        end

        private

        def sample(server, answers, rate, before)
          raise Child::Failed, "answered no request" unless answers[:answers].positive?

          errors = answers[:errors] + answers[:wrong]
          { value: answers[:p99_ms], rate:, errors:, **answers.slice(:p50_ms, :max_ms),
            note: errors.zero? ? nil : "#{answers[:wrong]} answers that were no 200, #{answers[:errors]} broken off",
            **usage(server, before, server.tree.cpu_seconds, answers[:answers]) }
        end
      end
    end
  end
end
