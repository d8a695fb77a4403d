# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      # A response body that ends only when the server stops. Several times a second it yields a line of JSON with the
      # number and latencies of the responses since the previous line, and with the server's current numbers. Times are
      # in seconds.
      class Pulse
        # Seconds between two lines.
        INTERVAL = 0.25

        # @param server [Server, nil] nil: the lines report no responses, and no current numbers
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

        # The number of responses in each bucket of the latency histogram, since the server's start.
        def latencies = @server&.engine&.latencies || []

        # The buckets that have changed, as pairs of bucket and number of new responses. The other buckets, which are
        # most of them, are left out.
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
