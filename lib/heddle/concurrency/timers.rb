# frozen_string_literal: true

require "heddle/concurrency/timer"

module Heddle
  module Concurrency
    # Timers of one loop. When its time has come, a timer is posted to its receiver, which calls the timer's block. The
    # task that keeps the timers runs only while there are any. Unlike {Alarms}, they don't keep the loop running.
    class Timers
      include MonotonicClock

      # @param scheduler [Scheduler]
      def initialize(scheduler)
        @scheduler = scheduler
        @alarms = AlarmHeap.new
        @task = nil
      end

      # Posts the timer to the receiver at an interval. A tick that comes while another one is pending is skipped.
      # @param interval [Numeric]
      # @param receiver [#post] calls the timer, now or later; must not wait
      # @return [Timer]
      def every(interval, receiver, &block)
        Seconds.interval(interval)
        add(Timer.new(self, interval, receiver, block), now + interval)
      end

      # Posts the timer to the receiver once.
      # @param seconds [Numeric]
      # @param receiver (see every)
      # @return [Timer]
      def after(seconds, receiver, &block) = add(Timer.new(self, nil, receiver, block), now + seconds)

      # Called by a timer with an interval that has rung.
      # @api private
      def renew(timer) = add(timer, [timer.alarm.time + timer.interval, now].max)

      # Called by a timer that is stopped.
      # @api private
      def forget(timer)
        @scheduler.unpark(@task.fiber) if @alarms.remove(timer.alarm) && @alarms.empty? && @task
      end

      private

      # Changes the state in one step, so that other fibers see the old or the new state.
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
        while (alarm = @alarms.first)
          next if @alarms.ring(now)

          rest = alarm.time - now
          @scheduler.park(rest) if rest.positive?
        end
      ensure
        @task = nil
      end
    end
  end
end
