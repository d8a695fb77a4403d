# frozen_string_literal: true

module Bench
  module HTTP
    module Rows
      # As many requests as the server can answer, made by wrk.
      class Load < HTTPRow
        SCRIPTS = File.expand_path("../wrk", __dir__)
        WARM_UP = 1 # second
        WARM_UP_CONNECTIONS = 64

        # @param path [String] the address
        # @param expected [String, Regexp] the answer
        # @param connections [Integer]
        # @param script [String, nil] name of a script for wrk, in wrk/
        # @param body [String, nil] of a POST, the same that the script sends
        # @param seconds [Integer] how long the load is measured
        # @param p99 [Boolean] whether the latencies mean something
        def initialize(path:, expected:, connections: 64, script: nil, body: nil, seconds: 2, p99: true, **)
          super(connections:, **)
          @path = path
          @expected = expected
          @script = script && File.join(SCRIPTS, "#{script}.lua")
          @body = body
          @seconds = seconds
          @latency = p99 ? [:p99_ms] : []
        end

        def unit = "req/s"

        def better = :higher

        def details = [:cpu_us, *@latency, :errors, :pss_mb, :resident_mb]

        def shown = [:cpu_us, *@latency, :pss_mb]

        def sizes(quick:) = { seconds: quick ? 1 : @seconds }

        def around(_quick)
          raise Child::Failed, "wrk is not installed" unless Wrk.installed?

          yield({})
        end

        # @param server [Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          server.check(@path, body: @body, expected: @expected)
          load(server, [connections, warm_up_connections].min, WARM_UP)
          before = server.tree.cpu_seconds
          run = load(server, connections, size[:seconds])
          after = server.tree.cpu_seconds
          good = run.requests - run.wrong_answers
          raise Child::Failed, "answered no request (#{run.error_words})" unless good.positive?

          { value: run.rate * good / run.requests, p50_ms: run.p50_ms, p99_ms: run.p99_ms,
            errors: run.socket_errors,
            note: run.socket_errors.zero? ? nil : "of #{Figure.grouped(run.requests)} answers: #{run.error_words}",
            **usage(server, before, after, run.requests) }
        end

        private

        def warm_up_connections = WARM_UP_CONNECTIONS

        # Server and load share the cores, as the system sees fit.
        def load(server, connections, seconds)
          Wrk.run("#{server.url}#{@path}", connections:, seconds:, script: @script, core: nil)
        end
      end
    end
  end
end
