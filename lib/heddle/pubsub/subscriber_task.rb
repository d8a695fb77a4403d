# frozen_string_literal: true

module Heddle
  module PubSub
    # The task that calls a subscriber's block. Its subscription ends with it, even if the task was cancelled before it
    # began.
    #
    # @api private
    class SubscriberTask < Concurrency::TaskFrame
      # @return [SubscriberTask] in the innermost scope that is open here
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
