# frozen_string_literal: true

module Heddle
  class Live
    # The tasks that the pages of one loop share: a task that reads each topic, and one that keeps the time.
    class Dispatcher
      include MonotonicClock

      # The result of {#every}; void when it has no session.
      Timer = Struct.new(:time, :interval, :session, :block, :pending) do
        # Called in the page.
        def call
          self.pending = false
          block.call if session
        end
      end
      # The subscription of a topic, and the sessions' blocks.
      Reader = Struct.new(:subscription, :receivers)
      private_constant :Reader

      # @return [Dispatcher] of the current loop
      # @raise [NoLoopError]
      def self.current
        scheduler = Concurrency.scheduler!("a page of Heddle::Live (it needs mode fiber)")
        scheduler.instance_variable_get(:@live) || scheduler.instance_variable_set(:@live, new(scheduler))
      end

      def initialize(scheduler)
        @scheduler = scheduler
        @readers = {}
        @timers = []
        @clock = nil
      end

      # Starts a task that nothing waits for.
      # @return [Task]
      def start(name, &) = Concurrency::Context.of(@scheduler).root.async(name: "live #{name}", background: true, &)

      # @param receiver [#call] called with each message; must not wait
      # @return [void]
      def subscribe(topic, receiver)
        alone { (@readers[topic] ||= read(topic)).receivers << receiver }
      end

      # @return [void]
      def unsubscribe(topic, receiver)
        alone do
          next unless (reader = @readers[topic])

          reader.receivers.delete(receiver)
          next unless reader.receivers.empty?

          @readers.delete(topic)
          reader.subscription.close
        end
      end

      # Posts the timer to the session every so many seconds; ticks that come while one is pending are left out.
      # @return [Timer]
      def every(interval, session, block)
        unless interval.is_a?(Numeric) && interval.positive? && interval.finite?
          raise ArgumentError, "the interval is #{interval.inspect}, but must be a positive number of seconds"
        end

        Timer.new(now + interval, interval, session, block, false).tap { |timer| add(timer) }
      end

      # Posts the block to the session once.
      # @return [Timer]
      def after(seconds, session, block)
        Timer.new(now + seconds, nil, session, block, false).tap { |timer| add(timer) }
      end

      private

      def read(topic)
        reader = Reader.new(PubSub::Subscription.new(@scheduler, topic, nil), [])
        start("topic #{topic}") do
          while (data, position = reader.subscription.take)
            message = PubSub::Message.new(topic:, data:, position:)
            reader.receivers.dup.each { |receiver| receiver.call(message) }
          end
        ensure
          reader.subscription.close
        end
        reader
      end

      # In one step, as far as the loop's other fibers can see.
      def alone(&) = @scheduler.without_preemption(&)

      def add(timer)
        alone do
          @timers.insert(@timers.bsearch_index { |other| other.time > timer.time } || @timers.size, timer)
          if @clock.nil? then @clock = start("timers") { keep_time }
          elsif @timers.first.equal?(timer) then @scheduler.unpark(@clock.fiber)
          end
        end
      end

      def keep_time
        alone do
          while (timer = @timers.first)
            rest = timer.time - now
            @scheduler.park(rest) or next if timer.session && rest.positive?

            @timers.shift
            ring(timer)
          end
        ensure
          @clock = nil
        end
      end

      def ring(timer)
        session = timer.session or return
        unless timer.pending
          timer.pending = true
          session.post(timer)
        end
        return unless timer.interval

        timer.time = [timer.time + timer.interval, now].max
        add(timer)
      end
    end
  end
end
