# frozen_string_literal: true

module Heddle
  module Databases
    module Sequel
      # The check-outs of one of Sequel's pools.
      class Checkouts < Databases::Checkouts
        # Raised when a waiting task can never get a connection. Its superclass is the error that Sequel raises when no
        # connection becomes free.
        class NestedCheckoutError < ::Sequel::PoolTimeout
          include Heddle::Error
        end

        # (see Databases::Checkouts#wait)
        def wait(_scheduler, server = nil)
          @state.waiting[Fiber.current] = server
          super
        ensure
          @state.waiting.delete(Fiber.current)
        end

        # @param server [Symbol, nil] the shard, if the pool has several
        # @return [Integer] number of fibers that wait for a connection; includes threads if the pool counts them
        def waiting(server)
          return @pool.num_waiting(*server) if @pool.respond_to?(:num_waiting)

          @state.waiting.values.count(server)
        end

        # @param server [Symbol, nil] the shard, if the pool has several
        # @return [Integer] number of connections that are checked out
        def busy(server) = allocated(server).size

        # @return [Array<Symbol, nil>] the pool's shards; `[nil]` if it has only one
        def servers = sharded? ? @pool.servers : [nil]

        # @return [String] the pool's name, for messages
        def name
          options = @pool.db.opts
          (options[:name] || options[:database] || @pool.db.adapter_scheme).to_s
        end

        # @param server [Symbol, nil] the shard, if the pool has several
        # @return [Array<Array(Fiber, Object)>, nil] each fiber with its connection; nil: the pool can open another
        #   connection
        def pairs(server)
          allocated = allocated(server).to_a
          allocated unless allocated.size < @pool.max_size
        end

        # @param slot [Pool::Slot]
        # @return [Boolean] whether the slot's fiber still has the connection
        def holds?(slot)
          connection = slot.resource or return false
          owners.any? { |hash| hash[slot.fiber].equal?(connection) }
        end

        # @param connection [Object] a driver's connection
        # @return [Boolean] whether it is connected and no query runs
        def quiet?(connection) = Databases.quiet?(connection)

        # @param fibers [Array<Fiber>]
        # @return [Boolean] whether one of them is in a transaction
        def transaction?(fibers)
          transactions = @pool.db.instance_variable_get(:@transactions)
          owners.any? { |hash| fibers.any? { |fiber| transactions.key?(hash[fiber]) } }
        end

        # @param lines [Array<String>] the backtrace of the slot's fiber
        # @return [String] file and line where the connection was checked out
        def checked_out(_slot, lines) = AppLines.checked_out(lines)

        private

        def error_class = NestedCheckoutError

        def allocations = @pool.instance_variable_get(:@allocated)

        # @return [Array<Hash{Fiber => Object}>] for each server, the connection of each fiber
        def owners = sharded? ? allocations.values : [allocations]

        def allocated(server) = sharded? ? allocations.fetch(server, {}) : allocations

        def sharded? = @pool.pool_type.start_with?("sharded")
      end
    end
  end
end
