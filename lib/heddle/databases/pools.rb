# frozen_string_literal: true

module Heddle
  module Databases
    # The statistics of this process's pools: {Heddle::Pool}, Active Record and Sequel. Any thread may ask for them.
    module Pools
      class << self
        # @return [Array<Hash{Symbol => Object}>] `pool` (its name), `library`, `limit`, `size`, `busy`, `idle`,
        #   `waiting`; and where the library lets it be counted `created`, `closed`, `timeouts`, `waits`,
        #   `wait_seconds`, `held_seconds`, `nested`, `held_while_waiting`; with a limit over all workers `max_total`
        #   and `size_total`. Names are unique.
        def all = unique(own + active_record + sequel)

        private

        def own
          return [] if Heddle.autoload?(:Pool) # the program has made none

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
              **ActiveRecord::ConnectionQueue.statistics(pool), **ActiveRecord::Limit.of(pool)&.statistics.to_h }
          end
        end

        def sequel
          return [] unless defined?(::Sequel::DATABASES)

          ::Sequel.synchronize { ::Sequel::DATABASES.dup }.flat_map { |database| of_sequel(database.pool) }
        end

        # A pool with several servers has connections of its own for each.
        def of_sequel(pool)
          return [] unless pool.instance_variable_get(:@allocated) # one connection for all, and no pool

          checkouts = Sequel::Checkouts.new(pool)
          checkouts.servers.map do |server|
            size = pool.size(*server)
            busy = [checkouts.busy(server), size].min
            { pool: [checkouts.name, server].compact.join(" "), library: "sequel", limit: pool.max_size, size:, busy:,
              idle: size - busy, waiting: checkouts.waiting(server) }
          end
        end

        # Pools of one name would share a series. A name that is not UTF-8 is converted, because JSON and metrics must
        # be UTF-8.
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
