# frozen_string_literal: true

require_relative "queue"

module Bench
  module Rows
    # The same hand-over through the best queue that a library offers: its own or Ruby's, whichever is quicker. Heddle
    # gets no such choice: what is measured is its Channel.
    class OwnQueue < Queue
      def key = "queue"

      def title = "hand-over through the library's best queue, one way"

      def measure(contestant, size)
        samples = choices(contestant).map do |name, maker|
          @maker = maker
          super.merge(note: name)
        end
        samples.min_by { |sample| sample[:value] }
      end

      private

      def choices(contestant)
        own = { "its own queue" => contestant.method(:own_queue) }
        return own if contestant.respond_to?(:root)

        ruby = { "Thread::Queue" => ::Thread::Queue.method(:new) }
        own_queue?(contestant) ? own.merge(ruby) : ruby
      end

      def own_queue?(contestant) = contestant.method(:own_queue).owner != Contestant

      def queue(_contestant) = @maker.call
    end
  end
end
