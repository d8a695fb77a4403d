# frozen_string_literal: true

require "heddle/concurrency/context"

module Heddle
  module Net
    module DNS
      # The queries that the program works on: how many, and since when. All have the same time limit, so one alarm, for
      # the oldest query, is enough.
      class InFlight
        include MonotonicClock

        # @param limit [Integer] queries
        # @param deadline [Numeric] seconds
        # @yield [query, task] one whose time is over; must not wait
        def initialize(limit, deadline, &expire)
          @limit = limit
          @deadline = deadline
          @expire = expire
          @entries = {}.compare_by_identity
          @alarm = nil
        end

        def size = @entries.size

        def full? = @entries.size >= @limit

        def add(query, task)
          @entries[query] = [task, now]
          arm(@deadline) unless @alarm
        end

        def remove(query)
          @entries.delete(query)
        end

        def close
          @clock.remove(@alarm) if @alarm
          @alarm = nil
          @entries.clear
        end

        # Called by the clock.
        def ring
          @alarm = nil
          latest = now - @deadline
          @entries.each do |query, (task, began)|
            return arm(began - latest) if began > latest

            @entries.delete(query)
            @expire.call(query, task)
          end
        end

        private

        def arm(seconds)
          @clock = Concurrency::Context.of(Fiber.scheduler).clock
          @alarm = @clock.add(seconds, self, :ring)
        end
      end
    end
  end
end
