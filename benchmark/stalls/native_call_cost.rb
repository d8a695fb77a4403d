# frozen_string_literal: true

require "fiddle"

module Bench
  module Stalls
    # What it costs that a native call gives up Ruby's lock: many calls of a function that does nothing, once in that
    # way and once with the lock held, which leaves what Fiddle does out of the difference.
    class NativeCallCost
      # @param work [Fiddle::Handle]
      def initialize(work)
        @held, @released = [true, false].map do |need_gvl|
          Fiddle::Function.new(work["work_nothing"], [Fiddle::TYPE_INT], Fiddle::TYPE_VOID, need_gvl:)
        end
      end

      # @return [Hash{String => #call}] that are given how many calls to make, and answer with the microseconds of one
      def kinds = { "call" => method(:cost), "call-inline" => method(:inline_cost) }

      private

      def inline_cost(calls)
        Heddle::Offload::Switch.send(:quick_libraries, ["work"]) if defined?(Heddle::Offload)
        cost(calls)
      end

      def cost(calls)
        [@held, @released].each { |function| time(function, calls / 10) }
        without = time(@held, calls)
        ((time(@released, calls) - without) / calls).to_s
      end

      # @return [Float] microseconds
      def time(function, calls)
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_microsecond)
        calls.times { function.call(0) }
        Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_microsecond) - began
      end
    end
  end
end
