# frozen_string_literal: true

module Heddle
  module Concurrency
    # Implements {Heddle.race}: starts a task for each contender. The first contender that succeeds, or fails with an
    # error that is not ignored, determines the result. The other tasks are cancelled.
    class Race
      def initialize(scope, ignore)
        Arguments.refuse("ignore:", ignore, "a list of classes of errors") unless [*ignore].all?(Module)
        @scope = scope
        @ignore = ignore
        @decided = false
        @ignored = []
      end

      def start_all(contenders, block)
        Arguments.refuse("the list", contenders, "an Enumerable") unless contenders.respond_to?(:to_a)
        contenders = contenders.to_a
        wrong = contenders.reject { |one| block || one.respond_to?(:call) }
        Arguments.refuse("a contender without a block", wrong.first, "an object with `call`") unless wrong.empty?
        raise ArgumentError, "Heddle.race needs at least one callable, but the list is empty" if contenders.empty?

        @contenders = contenders.size
        contenders.each_with_index do |contender, index|
          @scope.async(name: "#{Concurrency.place(block)}[#{index}]") { run(contender, block) }
        end
      end

      # @return what the block, or the winner's own `call`, returned for the winner
      attr_reader :winner

      private

      def run(contender, block)
        value = block ? block.call(contender) : contender.call
        return if @decided

        @decided = true
        @winner = value
        @scope.cancel
      rescue *@ignore => e
        @ignored << e
        drop_out
      end

      # Called when a contender has failed with an ignored error. If every contender has failed with such an error,
      # raises the first of these errors.
      def drop_out
        return if @decided || @ignored.size < @contenders

        error, *others = @ignored
        Concurrency.attach_failures(error, others) unless others.empty?
        raise error, cause: error.cause
      end
    end
  end
end
