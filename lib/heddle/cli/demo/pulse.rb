# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      # An endless body. Several times a second it sends a line of JSON, with the server's counts since the last line,
      # and its state now. Times are in seconds.
      class Pulse
        # Seconds between two lines.
        INTERVAL = 0.25

        # @param server [Server, nil] nil: all counts are 0
        # @param interval [Float] seconds between two lines
        def initialize(server, interval: INTERVAL)
          @server = server
          @interval = interval
        end

        # @yieldparam line [String]
        def each
          yield line(interval: @interval, bounds: HTTP::Engine::LATENCY_BOUNDS[0...-1])
          before = latencies
          due = MonotonicClock.now
          until @server&.stopping?
            due = [due + @interval, MonotonicClock.now].max
            sleep [due - MonotonicClock.now, 0].max
            counted = latencies
            yield line(at: MonotonicClock.now, **changes(before, counted), **present)
            before = counted
          end
        end

        private

        # The counters of the server's engine since its start: responses by their duration.
        def latencies = @server&.engine&.latencies || []

        # Most buckets are empty, so the others come as pairs: bucket, and responses.
        def changes(before, after)
          pairs = after.zip(before).each_with_index.filter_map do |(count, previous), bucket|
            [bucket, count - previous] if count > previous
          end
          { answers: pairs.sum(&:last), latencies: pairs.flatten }
        end

        def present = @server&.statistics&.slice(:connections, :idle, :running, :waiting, :limit) || {}

        def line(values) = "#{JSON.generate(values)}\n"
      end
    end
  end
end
