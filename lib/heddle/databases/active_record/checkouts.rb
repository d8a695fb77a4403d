# frozen_string_literal: true

require "heddle/databases/checkouts"

module Heddle
  module Databases
    module ActiveRecord
      # The check-outs of one of Active Record's pools.
      class Checkouts < Databases::Checkouts
        # Raised when a waiting task can never be served. A subclass of the error that Active Record documents for a
        # missing connection.
        class NestedCheckoutError < ::ActiveRecord::ConnectionTimeoutError
          include Heddle::Error
        end

        # The advice in a report of a permanent lease.
        WITH_CONNECTION = "Write with_connection { |connection| … } there: a permanent lease ends with the request, " \
                          "and until then no other fiber can use the connection"
        private_constant :WITH_CONNECTION

        # @return [String]
        def name = "#{@pool.db_config.name} #{@pool.role}"

        # Does not take the pool's lock, because Concurrency::Alarms calls this method, which must not wait.
        #
        # @return [Array<Array(Fiber, Object)>, nil] fibers, each with its connection; nil: another one can be opened
        def pairs(_server = nil) = all_connections&.map { |one| [one.owner, one] }

        # Returns only the fibers, because this is called for each task that waits.
        #
        # @return [Array<Fiber>, nil]
        def holders(_server = nil) = all_connections&.map(&:owner)

        # @param slot [Pool::Slot]
        # @return [Boolean] does its fiber still have the connection?
        def holds?(slot)
          owner = slot.resource&.owner
          !owner.nil? && (owner.equal?(slot.fiber) || owner.equal?(slot.task_fiber))
        end

        # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
        # @return [Boolean] is it connected, and is no query under way?
        def quiet?(connection) = Databases.quiet?(connection.instance_variable_get(:@raw_connection))

        # @param fibers [Array<Fiber>]
        # @return [Boolean] is one of them in a transaction?
        def transaction?(fibers)
          @pool.connections.any? { |one| fibers.include?(one.owner) && one.transaction_open? }
        end

        # @param slot [Pool::Slot]
        # @param lines [Array<String>] of the backtrace of its fiber
        # @return [String] file and line
        def checked_out(slot, lines)
          return AppLines.checked_out(lines) unless permanent?(slot)

          "#{slot.place || "an unknown place"}, as a permanent lease"
        end

        # @param slot [Pool::Slot]
        # @return [String, nil] what to do
        def advice(slot) = permanent?(slot) ? WITH_CONNECTION : super

        # Must be called by a fiber that has leased a connection until its request ends.
        #
        # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
        def leased(connection)
          slot = SLOTS[connection]
          slot.place ||= AppLines.innermost(caller) if slot && holds?(slot)
        end

        private

        def error_class = NestedCheckoutError

        # (see Databases::Checkouts#may_hold?) Copies nothing, because it is called for most requests that wait.
        def may_hold?(fiber, _server)
          connections = @pool.instance_variable_get(:@connections)
          @pool.size.nil? || connections.nil? || connections.size < @pool.size ||
            connections.any? { |one| one.owner.equal?(fiber) }
        end

        # @return [Array<ActiveRecord::ConnectionAdapters::AbstractAdapter>, nil] nil: another can be opened
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
