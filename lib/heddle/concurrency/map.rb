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
        index = 0
        items.each do |item|
          @semaphore&.acquire
          start(index, item, block)
          index += 1
        end
        @results
      end

      private

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
