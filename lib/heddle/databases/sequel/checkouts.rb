# frozen_string_literal: true

module Heddle
  module Databases
    module Sequel
      # The check-outs of one of Sequel's pools.
      class Checkouts < Databases::Checkouts
        # Raised when a waiting task can never be served. A subclass of the error that Sequel documents for a missing
        # connection.
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

        # @param server [Symbol, nil] of a pool with several
        # @return [Integer] how many fibers wait for a connection; where the pool counts them, threads as well
        def waiting(server)
          return @pool.num_waiting(*server) if @pool.respond_to?(:num_waiting)

          @state.waiting.values.count(server)
        end

        # @param server [Symbol, nil] of a pool with several
        # @return [Integer] how many connections are checked out
        def busy(server) = allocated(server).size

        # @return [Array<Symbol, nil>] the shards of a pool; nil: it has one
        def servers = sharded? ? @pool.servers : [nil]

        # @return [String]
        def name
          options = @pool.db.opts
          (options[:name] || options[:database] || @pool.db.adapter_scheme).to_s
        end

        # @param server [Symbol, nil] of a pool with several
        # @return [Array<Array(Fiber, Object)>, nil] fibers, each with its connection; nil: another can be opened
        def pairs(server)
          allocated = allocated(server).to_a
          allocated unless allocated.size < @pool.max_size
        end

        # @param slot [Pool::Slot]
        # @return [Boolean] does its fiber still have the connection?
        def holds?(slot)
          connection = slot.resource or return false
          owners.any? { |hash| hash[slot.fiber].equal?(connection) }
        end

        # @param connection [Object] of a driver
        # @return [Boolean] is it connected, and is no query under way?
        def quiet?(connection) = Databases.quiet?(connection)

        # @param fibers [Array<Fiber>]
        # @return [Boolean] is one of them in a transaction?
        def transaction?(fibers)
          transactions = @pool.db.instance_variable_get(:@transactions)
          owners.any? { |hash| fibers.any? { |fiber| transactions.key?(hash[fiber]) } }
        end

        # @param lines [Array<String>] of the backtrace of the slot's fiber
        # @return [String] file and line
        def checked_out(_slot, lines) = AppLines.checked_out(lines)

        private

        def error_class = NestedCheckoutError

        def allocations = @pool.instance_variable_get(:@allocated)

        # @return [Array<Hash{Fiber => Object}>] one for each server
        def owners = sharded? ? allocations.values : [allocations]

        def allocated(server) = sharded? ? allocations.fetch(server, {}) : allocations

        def sharded? = @pool.pool_type.start_with?("sharded")
      end
    end
  end
end
