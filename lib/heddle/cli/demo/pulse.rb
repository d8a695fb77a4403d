# frozen_string_literal: true

require "json"

module Heddle
  module CLI
    class Demo
      # A body that goes on for as long as its reader looks: several times a second a line of JSON with the server's
      # counts since the line before, and its state now. Times are in seconds.
      class Pulse
        # Seconds between two lines.
        INTERVAL = 0.25
        # The slowly changing facts are in every n-th line.
        FACTS = 4
        private_constant :FACTS

        # @param facts [Facts]
        # @param server [Server, nil] nil: one that counts nothing
        # @param interval [Float] seconds between two lines
        def initialize(facts, server, interval: INTERVAL)
          @facts = facts
          @server = server
          @interval = interval
        end

        # @yieldparam line [String]
        def each
          yield line(interval: @interval, bounds: HTTP::Engine::LATENCY_BOUNDS[0...-1])
          before = counts
          last = began = now
          number = 0
          until @server&.stopping?
            number += 1
            due = [began + (number * @interval), last].max
            sleep [due - now, 0].max
            counted = counts
            last = now
            yield line(at: last, late: (last - due).round(4), stalls: stalls(began), **changes(before, counted),
                       **present, **slow_facts(number))
            before = counted
          end
        end

        # The counters of the server's engine since its start: responses by their duration.
        def counts
          engine = @server&.engine
          { latencies: engine ? engine.latencies : [], rejected: engine ? engine.rejected : 0 }
        end

        private

        # The stalls since the last line: begin, end and cause.
        def stalls(began)
          recent = Stalls.recent
          index = @last_shown ? recent.rindex { |one| one.equal?(@last_shown) } : nil
          fresh = recent.drop(index ? index + 1 : 0).select { |one| one.began >= began }
          @last_shown = recent.last
          fresh.map { |one| { from: one.began, to: one.began + one.seconds, cause: Stall::CAUSES.fetch(one.cause) } }
        end

        # Most buckets are empty, so those that are not come as pairs: which, and how many.
        def changes(before, after)
          pairs = after[:latencies].zip(before[:latencies]).each_with_index.filter_map do |(count, previous), bucket|
            [bucket, count - previous] if count > previous
          end
          { answers: pairs.sum(&:last), latencies: pairs.flatten, rejected: after[:rejected] - before[:rejected] }
        end

        def present
          @server&.statistics&.slice(:connections, :idle, :running, :waiting, :limit, :fibers) || {}
        end

        def slow_facts(number)
          number % FACTS == 1 ? { facts: @facts.to_h } : {}
        end

        def line(values)
          "#{JSON.generate(values)}\n"
        end

        def now
          MonotonicClock.now
        end
      end
    end
  end
end
