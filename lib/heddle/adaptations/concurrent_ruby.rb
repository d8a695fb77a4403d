# frozen_string_literal: true

module Heddle
  module Adaptations
    # concurrent-ruby keeps the values of ThreadLocalVar in an Array for each thread, and those of FiberLocalVar in an
    # Array for each fiber. It has a list of these Arrays, which contains an Array until its thread or fiber is garbage
    # collected. In a loop, each request gets its own Array for ThreadLocalVar, as with the option `isolate`. A fiber
    # serves many requests, so {Listed} has weak references: an Array can be garbage collected when its request has
    # ended.
    module ConcurrentRuby
      # Lists the Arrays of requests. When a variable is garbage collected, its value is removed from all these Arrays,
      # because another variable may get the same index.
      module Listed
        # @see Concurrent::AbstractLocals#free_index
        def free_index(index)
          heddle_arrays.each_key { |locals| locals[index] = nil }
          super
        end

        private

        def heddle_arrays = @heddle_arrays ||= ObjectSpace::WeakMap.new

        def heddle_list(locals)
          heddle_arrays[locals] = true
          locals
        end
      end

      # Prepended to Concurrent::ThreadLocals.
      module ThreadLocals
        include Listed

        def locals
          values = ConcurrentRuby.values or return super
          values[:concurrent_thread_locals]
        end

        def locals!
          values = ConcurrentRuby.values or return super
          values[:concurrent_thread_locals] ||= heddle_list([])
        end
      end

      # Prepended to Concurrent::FiberLocals.
      module FiberLocals
        include Listed

        def locals!
          return super unless Fiber.current_scheduler.is_a?(Scheduler)

          Thread.current[:concurrent_fiber_locals] ||= heddle_list([])
        end
      end
      private_constant :Listed

      # @api private
      # @return [Hash, nil] the thread variables of the current request; nil if the thread's own variables apply
      def self.values = Isolation.values(Thread.current)

      # @return [void]
      def self.install
        ::Concurrent.const_get(:ThreadLocals, false).prepend(ThreadLocals)
        ::Concurrent.const_get(:FiberLocals, false).prepend(FiberLocals)
      end
    end
  end
end
