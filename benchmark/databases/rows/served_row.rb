# frozen_string_literal: true

require_relative "../../http/server"
require_relative "../web/application"

module Bench
  module Databases
    module Rows
      # What the rows have in common whose contestants are servers that ask the database.
      class ServedRow < QueryRow
        SCRIPT = File.expand_path("../wrk/statuses.lua", __dir__)
        WARM_UP = 1 # second
        private_constant :SCRIPT, :WARM_UP

        def served? = true

        def better = :higher

        def around(_quick)
          raise Child::Failed, "wrk is not installed" unless Wrk.installed?

          super
        end

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          server.check(path, expected:)
          load(server, size, WARM_UP)
          before = server.tree.cpu_seconds
          run = load(server, size, size[:seconds])
          after = server.tree.cpu_seconds
          sample(run, before && after && (after - before), size[:seconds])
        end

        private

        def load(server, size, seconds)
          Wrk.run("#{server.url}#{path}", connections: size[:clients], seconds:, script: SCRIPT, core: nil)
        end

        def sample(run, cpu, seconds)
          unavailable = run.counted("unavailable")
          good = run.requests - run.wrong_answers
          raise Child::Failed, "answered no request (#{run.error_words})" unless good.positive?

          { value: good.fdiv(seconds), p50_ms: run.p50_ms, p99_ms: run.p99_ms,
            cpu_us: cpu && (cpu * 1e6 / run.requests), unavailable:, errors: run.socket_errors - unavailable,
            note: run.socket_errors.zero? ? nil : "of #{Figure.grouped(run.requests)} answers: #{run.error_words}" }
        end
      end
    end
  end
end
