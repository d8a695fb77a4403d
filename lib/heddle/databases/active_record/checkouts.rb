# frozen_string_literal: true

require "heddle/databases/checkouts"

module Heddle
  module Databases
    module ActiveRecord
      # The check-outs of one of Active Record's pools.
      class Checkouts < Databases::Checkouts
        # Raised when a waiting task can never get a connection. Its superclass is the error that Active Record raises
        # when no connection becomes free.
        class NestedCheckoutError < ::ActiveRecord::ConnectionTimeoutError
          include Heddle::Error
        end

        # The advice in a report about a permanent lease.
        WITH_CONNECTION = "Use with_connection { |connection| … } instead. A permanent lease ends only with the " \
                          "request; until then no other fiber can use the connection"
        private_constant :WITH_CONNECTION

        # @return [String] the pool's name, for messages
        def name = "#{@pool.db_config.name} #{@pool.role}"

        # Does not lock the pool: Concurrency::Alarms calls this method, so it must not wait.
        #
        # @return [Array<Array(Fiber, Object)>, nil] each fiber with its connection; nil: the pool can open another
        #   connection
        def pairs(_server = nil) = all_connections&.map { |one| [one.owner, one] }

        # The fibers of {#pairs}. Makes no pairs, which would cost time for each task that waits for a connection.
        #
        # @return [Array<Fiber>, nil]
        def holders(_server = nil) = all_connections&.map(&:owner)

        # @param slot [Pool::Slot]
        # @return [Boolean] whether the slot's fiber still has the connection
        def holds?(slot)
          owner = slot.resource&.owner
          !owner.nil? && (owner.equal?(slot.fiber) || owner.equal?(slot.task_fiber))
        end

        # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
        # @return [Boolean] whether it is connected and no query runs
        def quiet?(connection) = Databases.quiet?(connection.instance_variable_get(:@raw_connection))

        # @param fibers [Array<Fiber>]
        # @return [Boolean] whether one of them is in a transaction
        def transaction?(fibers)
          @pool.connections.any? { |one| fibers.include?(one.owner) && one.transaction_open? }
        end

        # @param slot [Pool::Slot]
        # @param lines [Array<String>] the backtrace of the slot's fiber
        # @return [String] file and line where the connection was checked out
        def checked_out(slot, lines)
          return AppLines.checked_out(lines) unless permanent?(slot)

          "#{slot.place || "an unknown place"}, as a permanent lease"
        end

        # @param slot [Pool::Slot]
        # @return [String] what to do, for the report
        def advice(slot) = permanent?(slot) ? WITH_CONNECTION : super

        # Records where the calling fiber has leased a connection until the end of its request.
        #
        # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
        def leased(connection)
          slot = SLOTS[connection]
          slot.place ||= AppLines.innermost(caller) if slot && holds?(slot)
        end

        private

        def error_class = NestedCheckoutError

        # (see Databases::Checkouts#may_hold?) Copies no list, because it is called for most waiting requests.
        def may_hold?(fiber, _server)
          connections = @pool.instance_variable_get(:@connections)
          @pool.size.nil? || connections.nil? || connections.size < @pool.size ||
            connections.any? { |one| one.owner.equal?(fiber) }
        end

        # @return [Array<ActiveRecord::ConnectionAdapters::AbstractAdapter>, nil] nil: the pool can open another
        #   connection
        def all_connections
          connections = @pool.instance_variable_get(:@connections).to_a.dup
          connections unless @pool.size.nil? || connections.size < @pool.size
        end

        def permanent?(slot)
          connection = slot.resource or return false
          lease = @pool.instance_variable_get(:@leases)[connection.owner]
          lease.sticky && lease.connection.equal?(connection)
        end
      end
    end
  end
end
