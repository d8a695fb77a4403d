# frozen_string_literal: true

module Heddle
  module Concurrency
    # Tells objects of one loop that their time has come.
    #
    # Runs as a fiber of the loop, and only while a time limit is set.
    class Clock
      include MonotonicClock

      # The result of {Clock#add}: a message to be sent when its time has come. Void when it has no target.
      Alarm = Struct.new(:time, :target, :message)

      def initialize(scheduler)
        @scheduler = scheduler
        @alarms = [] # the latest first, so that the next one can be popped
        @void = 0
        @fiber = @process = nil
      end

      # Calls `target.message` in `seconds`; it must not wait.
      #
      # @return [Alarm] for {#remove}
      def add(seconds, target, message)
        forget_parent unless @fiber.nil? || @process == Process.pid
        alarm = Alarm.new(now + seconds, target, message)
        fiber = @fiber
        @process = Process.pid unless fiber
        @fiber ||= @scheduler.spawn(self) # may raise: then there is no alarm that would stay for ever
        insert(alarm)
        @scheduler.unpark(fiber) if fiber && @alarms.last.equal?(alarm)
        alarm
      end

      def remove(alarm)
        return unless alarm.target

        alarm.target = nil
        @void += 1
        if @void == @alarms.size
          @alarms.clear
          @void = 0
          @scheduler.unpark(@fiber) if @fiber
        elsif @void > 32 && @void * 2 > @alarms.size
          @alarms.select!(&:target)
          @void = 0
        end
      end

      # The job that the scheduler runs.
      def call
        until @alarms.empty?
          ring
          break if @alarms.empty?

          rest = @alarms.last.time - now
          @scheduler.park(rest) if rest.positive?
        end
      rescue Cancelled
        retry # a loop that is shut down cancels every fiber; the deadlines of the clean-up still count
      ensure
        @fiber = nil
      end

      private

      # This is a forked child: neither the fiber nor those that it was to tell exist here.
      def forget_parent
        @alarms.each { |alarm| alarm.target = nil }
        @alarms.clear
        @void = 0
        @fiber = nil
      end

      def ring
        while (alarm = @alarms.last)
          target = alarm.target
          return if target && alarm.time > now

          @alarms.pop
          if target
            alarm.target = nil
            target.public_send(alarm.message)
          else
            @void -= 1
          end
        end
      end

      def insert(alarm)
        time = alarm.time
        if @alarms.empty? || @alarms.first.time <= time
          @alarms.unshift(alarm)
        else
          @alarms.insert(@alarms.bsearch_index { |other| other.time <= time } || @alarms.size, alarm)
        end
      end
    end
  end
end
