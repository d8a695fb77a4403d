# frozen_string_literal: true

module Heddle
  module Databases
    module ActiveRecord
      # Implements `max_total` of an entry in config/database.yml: the maximum number of connections of its pools in all
      # workers together. Each connection needs a share of that limit ({Pool::Registry.sharing}). Active Record closes
      # connections in many places, which don't call this class. So it compares the number of shares with the number of
      # connections again and again, and returns excess shares.
      class MaxTotal
        # Seconds between two checks while fibers wait for a share.
        POLL_INTERVAL = 0.1
        private_constant :POLL_INTERVAL

        class << self
          # @param pool [ActiveRecord::ConnectionAdapters::ConnectionPool]
          # @return [MaxTotal, nil] nil: no `max_total`, or this process is not a worker
          # @raise [ArgumentError]
          def of(pool)
            config = pool.db_config
            return unless config.configuration_hash[:max_total] && (sharing = Pool::Registry.sharing)

            name = "Active Record #{config.name} #{config.database}"
            limit = sharing.limit(name) { new(sharing.open(name, total_of(config))) }
            limit&.add(pool)
          end

          # @param config [ActiveRecord::DatabaseConfigurations::HashConfig]
          # @return [Integer, nil]
          # @raise [ArgumentError]
          def total_of(config)
            value = config.configuration_hash[:max_total] or return
            total = Integer(value, exception: false)
            return total if total&.between?(1, Pool::Registry::LARGEST_TOTAL)

            raise ArgumentError, "max_total of the database #{config.name} is #{value.inspect}, " \
                                 "but must be from 1 to #{Pool::Registry::LARGEST_TOTAL}"
          end
        end

        # @param share [Net::PoolShares::Share]
        def initialize(share)
          @share = share
          @pools = ObjectSpace::WeakMap.new
          @lock = Mutex.new
          @taken = 0 # number of shares that this process has
          @reserved = 0 # number of connections that are being made or closed; each needs a share
        end

        # Adds a pool to which the limit applies.
        # @return [self]
        def add(pool)
          @pools[pool] = true
          self
        end

        # @return [Hash{Symbol => Integer}]
        def statistics
          return_shares
          { max_total: @share.total, size_total: @share.taken }
        end

        # Runs the block, which makes a connection, if a share is free. Fibers that already wait have priority.
        #
        # @param waited [Boolean] whether the connection is for a waiting fiber
        # @return what the block returns; nil: no share is free
        def make(waited, &)
          return reserved(&) if (waited || needy.empty?) && take

          report_wait
          nil
        end

        # Must a connection be closed when it is checked in, because another worker or pool waits for its share?
        def yields?(pool, connection)
          return false if pool.heddle_closing? || !connection.connected?

          @share.yields?(used) || @share.yields?(pool.heddle_size, (needy - [pool]).map(&:heddle_size).min)
        end

        # Closes a connection at its check-in.
        # @param queue [ConnectionQueue] the pool's queue
        # @yield checks the connection in
        def close(queue, connection)
          leaving = queue.heddle_leaving
          leaving[connection] = true
          @reserved += 1
          reserved do
            yield
            connection.disconnect! unless leaving.key?(connection) # Active Record keeps a pinned connection
          end
        ensure
          leaving.delete(connection)
          return_shares
          report_wait
        end

        # The loop calls this method when another worker waits for a share or has returned one; see
        # {Pool::Registry.shares_changed}.
        #
        # @return [Float, nil] seconds until the next call; nil: no fiber waits
        def shares_changed
          serve
          if needy.any? || @share.least_waiting
            @pools.keys.lazy.filter_map(&:heddle_take_idle).first&.throw_away!
            serve
          end
          return_shares
          POLL_INTERVAL if report_wait
        end

        # @return [Boolean] whether any fiber waits for a share
        def report_wait = @share.wait(needy.any?)

        # @return [Exception, nil] the error with a hint at `max_total`; nil: the wait was not for a share
        def explain(error, pool)
          text = "#{error.message}; max_total of the database #{pool.db_config.name} allows " \
                 "#{@share.total} connections in all workers together"
          error.exception(text) if pool.heddle_grows?
        end

        private

        def needy = @pools.keys.select(&:heddle_needs_connection?)

        def used = @reserved + @pools.keys.sum(&:heddle_size)

        def take
          @lock.synchronize do
            @taken += 1 if @taken <= used && @share.take
            @reserved += 1 if @taken > used
          end
        end

        def reserved
          yield
        ensure
          @reserved -= 1 # without the lock, because a killed fiber can't wait for it
        end

        # Gives back the shares that this process no longer needs. Does nothing if another fiber is taking or giving
        # back shares now.
        def return_shares
          locked = @lock.try_lock or return
          (@taken - used).times do
            @taken -= 1
            @share.return_one
          end
        ensure
          @lock.unlock if locked
        end

        # Makes connections for waiting fibers. Active Record connects only at the first query, so an error here is a
        # mistake in the pool's configuration. The error is ignored, because the waiting fibers get the same error.
        def serve
          while (pool = needy.min_by(&:heddle_size)) && (one = pool.heddle_make)
            pool.checkin(one)
          end
        rescue StandardError
          nil
        end
      end
    end
  end
end
