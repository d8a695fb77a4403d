# frozen_string_literal: true

module Heddle
  module Concurrency
    # Calls methods at set times in one loop.
    #
    # While an alarm is set, a fiber of the loop waits for the next alarm. The alarms are in a heap in C
    # (ext/heddle/concurrency/alarm_heap.c). Adding or removing an alarm costs O(log n).
    class Alarms
      include MonotonicClock

      def initialize(scheduler)
        @scheduler = scheduler
        @heap = AlarmHeap.new
        @fiber = @process = nil
      end

      # Calls the method `message` of `target` after `seconds`. The method must not wait.
      #
      # @return [Alarm] for {#remove}
      def add(seconds, target, message)
        forget_parent unless @fiber.nil? || @process == Process.pid
        fiber = @fiber
        @process = Process.pid unless fiber
        @fiber ||= @scheduler.spawn(self) # first, because it may raise: then no alarm is left behind
        alarm = @heap.add(now + seconds, target, message)
        @scheduler.unpark(fiber) if fiber && @heap.first.equal?(alarm)
        alarm
      end

      def remove(alarm)
        @scheduler.unpark(@fiber) if @heap.remove(alarm) && @heap.empty? && @fiber
      end

      # The body of the fiber.
      def call
        while (rest = @heap.ring(now))
          @scheduler.park(rest) if rest.positive?
        end
      rescue Cancelled
        retry # a loop that shuts down cancels every fiber, but time limits must still apply during the clean-up
      ensure
        # If the method of one alarm has raised, a new fiber rings the other alarms.
        @fiber = (@scheduler.spawn(self) unless @heap.empty?)
      end

      private

      # In a forked child, the fiber does not exist, and the alarms are the parent's.
      def forget_parent
        @heap.clear
        @fiber = nil
      end
    end
  end
end
