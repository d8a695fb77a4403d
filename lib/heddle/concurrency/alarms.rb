# frozen_string_literal: true

module Heddle
  module Concurrency
    # Sends messages to objects of one loop at set times.
    #
    # Runs as a fiber of the loop, and only while an alarm is set. The alarms are in a heap in C
    # (ext/heddle/concurrency/alarm_heap.c): to add or remove one costs O(log n).
    class Alarms
      include MonotonicClock

      def initialize(scheduler)
        @scheduler = scheduler
        @heap = AlarmHeap.new
        @fiber = @process = nil
      end

      # Calls `target.message` in `seconds`. That method must not wait.
      #
      # @return [Alarm] for {#remove}
      def add(seconds, target, message)
        forget_parent unless @fiber.nil? || @process == Process.pid
        fiber = @fiber
        @process = Process.pid unless fiber
        @fiber ||= @scheduler.spawn(self) # before the alarm is added: if this raises, no fiber would remove the alarm
        alarm = @heap.add(now + seconds, target, message)
        @scheduler.unpark(fiber) if fiber && @heap.first.equal?(alarm)
        alarm
      end

      def remove(alarm)
        @scheduler.unpark(@fiber) if @heap.remove(alarm) && @heap.empty? && @fiber
      end

      # The job that the scheduler runs.
      def call
        while (alarm = @heap.first)
          next if @heap.ring(now)

          rest = alarm.time - now
          @scheduler.park(rest) if rest.positive?
        end
      rescue Cancelled
        retry # a loop that is shut down cancels every fiber, but the clean-up still needs its time limits
      ensure
        @fiber = nil
      end

      private

      # In a forked child neither the fiber nor the receivers exist.
      def forget_parent
        @heap.clear
        @fiber = nil
      end
    end
  end
end
