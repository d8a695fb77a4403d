# frozen_string_literal: true

require "heddle/concurrency/timer"

module Heddle
  module Concurrency
    # The timers of one loop. When a timer is due, it is posted to its receiver, which calls the timer's block. While
    # timers are set, a task waits until the next one is due. Unlike {Alarms}, timers don't keep the loop running.
    class Timers
      include MonotonicClock

      # @param scheduler [Scheduler]
      def initialize(scheduler)
        @scheduler = scheduler
        @alarms = AlarmHeap.new
        @task = nil
      end

      # Posts a timer to the receiver at an interval. Skips a call that is due while the previous one is still pending.
      # @param interval [Numeric] seconds
      # @param receiver [#post] calls the timer, now or later; must not wait
      # @return [Timer]
      def every(interval, receiver, &block)
        Arguments.interval(interval)
        add(Timer.new(self, interval, receiver, block), now + interval)
      end

      # Posts a timer to the receiver once.
      # @param seconds [Numeric] seconds from now
      # @param receiver (see every)
      # @return [Timer]
      def after(seconds, receiver, &block) = add(Timer.new(self, nil, receiver, block), now + seconds)

      # A timer with an interval calls this method each time it is due.
      # @api private
      def renew(timer) = add(timer, [timer.alarm.time + timer.interval, now].max)

      # A timer calls this method when it is stopped.
      # @api private
      def forget(timer)
        @scheduler.unpark(@task.fiber) if @alarms.remove(timer.alarm) && @alarms.empty? && @task
      end

      private

      # Runs without preemption, so that other fibers never see a partly changed state.
      def add(timer, time)
        @scheduler.without_preemption do
          timer.alarm = @alarms.add(time, timer, :ring)
          if @task.nil? then @task = start
          elsif @alarms.first.equal?(timer.alarm) then @scheduler.unpark(@task.fiber)
          end
        end
        timer
      end

      def start
        Context.of(@scheduler).root.async(name: "timers", background: true) do
          @scheduler.without_preemption { keep_time }
        end
      end

      def keep_time
        while (rest = @alarms.ring(now))
          @scheduler.park(rest) if rest.positive?
        end
      ensure
        @task = nil
      end
    end
  end
end
