# frozen_string_literal: true

module Heddle
  module Databases
    # The statistics of this process's pools: {Heddle::Pool}, Active Record and Sequel. Any thread may call {all}.
    module Pools
      class << self
        # @return [Array<Hash{Symbol => Object}>] for each pool `library`, `pool` (a name, unique in its library),
        #   `limit`, `size`, `busy`, `idle`, `waiting`. If they can be counted for the library, also `created`,
        #   `closed`, `timeouts`, `waits`, `wait_seconds`, `held_seconds`, `nested`, `held_while_waiting`. With a limit
        #   for all workers, also `max_total` and `size_total`.
        def all = unique(own + active_record + sequel)

        private

        def own
          return [] if Heddle.autoload?(:Pool) # the program uses no Heddle::Pool

          Pool.all.map do |pool|
            statistics = pool.statistics
            { pool: statistics.delete(:name), library: "heddle", **statistics }
          end
        end

        def active_record
          return [] unless defined?(::ActiveRecord::Base)

          ::ActiveRecord::Base.connection_handler.connection_pool_list(:all).map do |pool|
            stat = pool.stat
            { pool: "#{pool.db_config.name} #{pool.role}", library: "active_record", limit: stat[:size],
              size: stat[:connections], busy: stat[:busy], idle: stat[:idle], waiting: stat[:waiting],
              **ActiveRecord::ConnectionQueue.statistics(pool), **ActiveRecord::MaxTotal.of(pool)&.statistics.to_h }
          end
        end

        def sequel
          return [] unless defined?(::Sequel::DATABASES)

          ::Sequel.synchronize { ::Sequel::DATABASES.dup }.flat_map { |database| of_sequel(database.pool) }
        end

        # A pool with several servers (shards) has separate connections for each.
        def of_sequel(pool)
          return [] unless pool.instance_variable_get(:@allocated) # a single connection, not a pool

          checkouts = Sequel::Checkouts.new(pool)
          checkouts.servers.map do |server|
            size = pool.size(*server)
            busy = [checkouts.busy(server), size].min
            { pool: [checkouts.name, server].compact.join(" "), library: "sequel", limit: pool.max_size, size:, busy:,
              idle: size - busy, waiting: checkouts.waiting(server) }
          end
        end

        # Makes names unique, because pools with the same name would share a time series in the metrics. Converts names
        # to UTF-8, which JSON and metrics require.
        def unique(pools)
          seen = Hash.new(0)
          pools.each do |one|
            one[:pool] = PrintableText.line(one[:pool])
            count = seen[one.values_at(:library, :pool)] += 1
            one[:pool] = "#{one[:pool]} (#{count})" if count > 1
          end
        end
      end
    end
  end
end
