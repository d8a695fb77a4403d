# frozen_string_literal: true

module Heddle
  module Concurrency
    # The times at which objects of one loop are given blocks to call. A task keeps them, and only while there are any.
    # In place of {Clock}, whose alarms count as work of the loop: these end with it.
    class Timers
      include MonotonicClock

      # The result of {#every} and {#after}.
      Timer = Struct.new(:time, :interval, :receiver, :block, :pending) do
        # Called by the receiver.
        def call
          self.pending = false
          block&.call
        end

        # The timer may be kept until its time: it keeps nothing of its receiver.
        # @return [void]
        def stop = self.receiver = self.block = nil
      end

      # @param scheduler [Scheduler]
      def initialize(scheduler)
        @scheduler = scheduler
        @timers = [] # the next one first
        @task = nil
      end

      # Posts the timer to the receiver every so many seconds; ticks that come while one is pending are left out.
      # @param interval [Numeric]
      # @param receiver [#post] calls the timer, now or later; must not wait
      # @return [Timer]
      def every(interval, receiver, &block)
        unless interval.is_a?(Numeric) && interval.positive? && interval.finite?
          raise ArgumentError, "the interval is #{interval.inspect}, but must be a positive number of seconds"
        end

        add(Timer.new(now + interval, interval, receiver, block, false))
      end

      # Posts the timer to the receiver once.
      # @param seconds [Numeric]
      # @param receiver (see every)
      # @return [Timer]
      def after(seconds, receiver, &block) = add(Timer.new(now + seconds, nil, receiver, block, false))

      private

      # In one step, as far as the loop's other fibers can see.
      def add(timer)
        @scheduler.without_preemption do
          @timers.insert(@timers.bsearch_index { |other| other.time > timer.time } || @timers.size, timer)
          if @task.nil? then @task = start
          elsif @timers.first.equal?(timer) then @scheduler.unpark(@task.fiber)
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
        while (timer = @timers.first)
          rest = timer.time - now
          @scheduler.park(rest) or next if timer.receiver && rest.positive?

          @timers.shift
          ring(timer)
        end
      ensure
        @task = nil
      end

      def ring(timer)
        receiver = timer.receiver or return
        unless timer.pending
          timer.pending = true
          receiver.post(timer)
        end
        return unless timer.interval

        timer.time = [timer.time + timer.interval, now].max
        add(timer)
      end
    end
  end
end
