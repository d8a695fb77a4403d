# frozen_string_literal: true

require "heddle/concurrency/timeout_error"

module Heddle
  module Concurrency
    # The scope of {Heddle.timeout}. It is cancelled when the time limit has passed.
    class Deadline < ScopeFrame
      # @param seconds [Numeric]
      def initialize(task, seconds)
        super(task)
        @seconds = seconds
        @expired = false
      end

      def run
        alarms = Context.of(task.scheduler).alarms
        alarm = alarms.add(@seconds, self, :expire) if @seconds.positive? && @seconds.finite?
        super
      ensure
        alarms.remove(alarm) if alarm
      end

      def open
        super
        expire unless @seconds.positive?
      end

      # Called by {Alarms}, or by {#open} if the limit is not positive.
      def expire
        @expired = true # before the call, because {#cancel_message} reads it
        @expired = cancel
      end

      # @return [Boolean] whether it was cancelled because the time limit has passed
      def expired? = @expired

      def to_s = "the time limit of #{@seconds} s in #{task}"

      private

      def raise_outcome
        super
        raise TimeoutError, "not done within #{@seconds} s" if @expired && @surfaced
      end

      def cancel_message = @expired ? "the time limit of #{@seconds} s is over" : super
    end
  end
end
