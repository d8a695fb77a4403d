# frozen_string_literal: true

require_relative "../native"

module Bench
  module HTTP
    module Rows
      # Requests whose application sleeps, on many connections at once. The rate counts only while all connections are
      # busy: see native/steady.c for why wrk does not do.
      class Sleepers < HTTPRow
        WARM_UP = 1 # second after the last connection was opened, at least; always a whole number of sleeps

        # @param seconds [Numeric] that a request sleeps
        def initialize(seconds:, **)
          super(**)
          @seconds = seconds
        end

        def unit = "req/s"

        def better = :higher

        def details = %i[p99_ms p50_ms cpu_us errors pss_mb resident_mb]

        def shown = %i[p99_ms cpu_us pss_mb]

        def sizes(quick:) = { measured: quick ? 2 : 6, warm_up: quick ? WARM_UP : WARM_UP * 2 }

        # @param server [Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          server.check(path, expected:)
          before = nil
          answers = Native.run("steady", server.port, path, connections, 1_000, size[:warm_up] * 1_000,
                               size[:measured] * 1_000) do |said, _|
            said.call
            before = server.tree.cpu_seconds
            said.call
          end
          sample(server, answers, before, server.tree.cpu_seconds)
        end

        private

        def path = "/sleep/#{@seconds}"

        def expected = Application::HELLO

        def sample(server, answers, before, after)
          good = answers[:answers] - answers[:wrong]
          errors = answers[:errors] + answers[:wrong]
          raise Child::Failed, "answered no request; #{errors} errors" unless good.positive?

          { value: answers[:rate], **answers.slice(:p50_ms, :p99_ms), errors:,
            note: errors.zero? ? nil : "#{answers[:wrong]} answers that were no 200, #{answers[:errors]} broken off",
            **usage(server, before, after, answers[:answers]) }
        end
      end
    end
  end
end
