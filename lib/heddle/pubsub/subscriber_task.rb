# frozen_string_literal: true

module Heddle
  module PubSub
    # The task that calls a subscriber's block. The subscription ends with the task, even if the task is cancelled
    # before it begins.
    #
    # @api private
    class SubscriberTask < Concurrency::TaskFrame
      # @return [SubscriberTask] a task in the caller's innermost scope
      # @raise [ScopeEndedError] when that scope has ended
      def self.start(scheduler, subscription, topic, block)
        scope = Concurrency::Context.of(scheduler).scope
        scope.begin_task(new(scope, scope.task.scheduler, subscription, topic, block), true)
      rescue Exception
        subscription.close
        raise
      end

      def initialize(scope, scheduler, subscription, topic, block)
        super(scope, scheduler, "subscription to #{topic}", -> { subscription.each_message(topic, &block) })
        @subscription = subscription
      end

      private

      def settle
        @subscription.close
        super
      end
    end
  end
end
