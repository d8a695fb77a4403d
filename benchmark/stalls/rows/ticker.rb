# frozen_string_literal: true

require "etc"

module Bench
  module Stalls
    module Rows
      # While some requests compute in a library, another one sleeps again and again: how late it wakes, at worst.
      class Ticker < StallsRow
        def unit = "ms"

        def details = %i[p50_ms p99_ms]

        # @param server [HTTP::Server]
        # @param size [Hash]
        # @return [Hash] the sample
        def measure(server, size)
          crowd = Crowd.new(server.port)
          # It comes first: where a server does not let it in while others compute, it would miss them.
          ticker = crowd.ask("/ticker/#{(START * 2_000).round + (size[:blocked_ms] / 2)}", 1)
          sleep(START)
          block(crowd, size[:blocked_ms])
          crowd.await(ticker)
          late = ticker.first.body.split.map(&:to_f).sort
          p50, p99 = [0.5, 0.99].map { |share| late[(late.size * share).ceil - 1] }
          { value: late.last, p50_ms: p50, p99_ms: p99 }
        end
      end
    end
  end
end
