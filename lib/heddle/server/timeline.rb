# frozen_string_literal: true

module Heddle
  class Server
    # By how much one loop was late in the last minute, in cells of equal length: the worst of each. Bounded. The loop
    # writes it a few times a second; it may be read from any thread, also while the loop itself can't tell.
    class Timeline
      # Seconds of a cell.
      CELL_SECONDS = 0.25
      # How many there are.
      CELLS = 240
      # Seconds by which a look may be late without a stall.
      TOLERANCE = 0.02

      def initialize
        @lags = Array.new(CELLS)
        @newest = nil
        @due = nil
      end

      # The loop has had time for a look.
      # @param time [Float] now: seconds of CLOCK_MONOTONIC
      # @param lag [Float] seconds by which it came late
      # @param due [Float] when the next one is due
      # @return [void]
      def note(time, lag, due)
        first = cell(time - lag)
        last = cell(time)
        advance(last)
        ([first, last - CELLS + 1].max..last).each do |index|
          slot = index % CELLS
          @lags[slot] = lag if @lags[slot].nil? || @lags[slot] < lag
        end
        @due = due
      end

      # @param now [Float] seconds of CLOCK_MONOTONIC
      # @return [Array<Float, nil>] seconds of each of the last {CELLS}, the oldest first; nil: the loop did not run.
      #   While it is blocked, the last ones say for how long so far.
      def lags(now)
        newest = @newest or return Array.new(CELLS)
        last = [cell(now), newest].max
        found = ((last - CELLS + 1)..last).map do |index|
          if index > newest then 0.0
          elsif index > newest - CELLS then @lags[index % CELLS]
          end
        end
        hold_up(found, last, now)
      end

      private

      def cell(time) = (time / CELL_SECONDS).floor

      # Between two looks nothing was late.
      def advance(last)
        newest = @newest || (last - 1)
        ([newest + 1, last - CELLS + 1].max..last).each { |index| @lags[index % CELLS] = 0.0 }
        @newest = [last, newest].max
      end

      def hold_up(found, last, now)
        lag = now - @due
        return found if lag < TOLERANCE

        ([cell(@due), last - CELLS + 1].max..last).each do |index|
          position = index - last - 1
          found[position] = [found[position] || 0.0, lag].max
        end
        found
      end
    end
  end
end
