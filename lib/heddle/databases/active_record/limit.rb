# frozen_string_literal: true

module Heddle
  module Databases
    module ActiveRecord
      # `max_total` of an entry of config/database.yml: how many connections its pools have in all workers together.
      # Each connection needs a share ({Pool::Registry.sharing}). Active Record closes connections in many ways, so the
      # number of shares is compared with the number of the pools' connections, and the excess is returned.
      class Limit
        # Seconds between two checks while fibers wait for a share.
        POLL_INTERVAL = 0.1
        private_constant :POLL_INTERVAL

        class << self
          # @param pool [ActiveRecord::ConnectionAdapters::ConnectionPool]
          # @return [Limit, nil] nil: there is no limit, or this process is not a worker
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
          @taken = 0 # shares
          @reserved = 0 # shares of connections that are being made or closed
        end

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

        # Runs the block, which makes a connection, if there is a share for it. Fibers that wait come first.
        #
        # @param waited [Boolean] whether the connection is for one of them
        def make(waited, &)
          return reserved(&) if (waited || needy.empty?) && take

          report_wait
          nil
        end

        # Must a connection be closed when it is checked in, because another worker, or another pool, waits for one?
        def yields?(pool, connection)
          return false if pool.heddle_closing? || !connection.connected?

          @share.yields?(used) || @share.yields?(pool.heddle_size, (needy - [pool]).map(&:heddle_size).min)
        end

        # @param queue [ConnectionQueue] of the pool
        # @yield checks the connection in
        def close(queue, connection)
          leaving = queue.heddle_leaving
          leaving[connection] = true
          @reserved += 1
          reserved do
            yield
            connection.disconnect! unless leaving.key?(connection) # a pinned one stays
          end
        ensure
          leaving.delete(connection)
          return_shares
          report_wait
        end

        # Called in the loop (see {Pool::Registry.shares_changed}).
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

        # @return [Boolean] does any fiber wait for a share?
        def report_wait = @share.wait(needy.any?)

        # @return [Exception, nil] the error with the limit's name, if a fiber waited for a share
        def explain(error, pool)
          text = "#{error.message}; max_total of the database #{pool.db_config.name} allows all workers " \
                 "#{@share.total} connections"
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
          @reserved -= 1 # without the lock, for which a killed fiber can't wait
        end

        # Does nothing while another fiber compares the numbers.
        def return_shares
          locked = @lock.try_lock or return
          (@taken - used).times do
            @taken -= 1
            @share.return_one
          end
        ensure
          @lock.unlock if locked
        end

        # Makes connections for fibers that wait; the driver connects at the first query. An error is a mistake in the
        # pool's configuration, so the waiting fibers get it, too.
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
