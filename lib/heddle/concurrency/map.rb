# frozen_string_literal: true

require "heddle/concurrency/semaphore"

module Heddle
  module Concurrency
    # Implements {Heddle.map}: starts a task for each item, at most `limit` at the same time. The results have the order
    # of the items.
    class Map
      def initialize(scope, limit)
        @scope = scope
        @semaphore = Semaphore.new(limit) if limit
        @results = []
      end

      def each_of(items, &block)
        check(items)
        index = 0
        items.each do |item|
          @semaphore&.acquire
          start(index, item, block)
          index += 1
        end
        @results
      end

      private

      # Rejects an endless Range if there is no limit, because Heddle would start tasks forever, and run none. Does not
      # check the `size` of other objects: an Enumerator may end although its size is infinite, and `size` may query a
      # database.
      def check(items)
        Arguments.refuse("the list", items, "an object with `each`") unless items.respond_to?(:each)
        Arguments.refuse("the list", items, "finite unless limit: is given") if
          @semaphore.nil? && items.is_a?(Range) && items.size == Float::INFINITY
      end

      def start(index, item, block)
        @results[index] = nil
        @scope.async(name: "#{Concurrency.place(block)}[#{index}]") do
          @results[index] = block.call(item)
        ensure
          @semaphore&.release
        end
      end
    end
  end
end
