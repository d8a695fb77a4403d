# frozen_string_literal: true

module Heddle
  module Adaptations
    # concurrent-ruby keeps the values of ThreadLocalVar in a thread variable, and the values of FiberLocalVar in a
    # fiber local: each in an Array, which it lists until the thread or the fiber is collected. In a loop each request
    # has an Array of its own for ThreadLocalVar, as with the option `isolate`. The loop's fibers serve many requests,
    # so both kinds of Arrays are listed by weak references and end with their request.
    module ConcurrentRuby
      # The Arrays of requests. When a variable is collected, another one gets its index in them.
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
      # @return [Hash, nil] the thread variables of the current request; nil where the thread's own apply
      def self.values = Isolation.values(Thread.current)

      # @return [void]
      def self.install
        ::Concurrent.const_get(:ThreadLocals, false).prepend(ThreadLocals)
        ::Concurrent.const_get(:FiberLocals, false).prepend(FiberLocals)
      end
    end
  end
end
