# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      # A body that sings, a line at a time.
      class Song
        # @param bottles [Integer] how many are on the wall at first
        # @param pause [Float] seconds between two lines
        # @param stopping [#call] whether the server stops
        def initialize(bottles:, pause:, stopping: -> { false })
          @bottles = bottles
          @pause = pause
          @stopping = stopping
        end

        # @yieldparam line [String]
        def each
          @bottles.downto(1) do |number|
            yield "#{count(number).capitalize} on the wall. Take one down, pass it around.\n"
            sleep @pause
            return yield("The bar closes.\n") if @stopping.call
          end
          yield "No more bottles of beer on the wall.\n"
        end

        private

        def count(number)
          "#{number} #{number == 1 ? "bottle" : "bottles"} of beer"
        end
      end
    end
  end
end
