# frozen_string_literal: true

$LOAD_PATH.unshift(File.join(Bench::ROOT, "test"))
require "heddle"
require "pubsub/backend/support/private_redis"
require "pubsub/backend/support/pubsub_machine"
require "support/private_postgresql"

module Bench
  module Realtime
    # Servers that give messages their order, each for one row: they are cut off and killed.
    module Backends
      # Redis: what is durable is in its append-only file, flushed at each message.
      class Redis < PrivateRedis
        LABEL = "Redis"
        PATH = %w[/usr/local/bin /usr/bin].freeze

        # @param durable [Boolean]
        # @yieldparam server [Redis]
        # @raise [Child::Failed] where it is not installed
        def self.run(durable:)
          program = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).concat(PATH)
                       .map { |folder| File.join(folder, "redis-server") }.find { |path| File.executable?(path) }
          raise Child::Failed, "needs Redis (Debian package redis-server)" unless program

          require "redis-client"
          server = new(program, durable ? DURABLE : FORGETFUL)
          yield server
        ensure
          server&.stop
        end
      end

      # PostgreSQL: what is durable is in its log, with fsync.
      class Postgresql < PrivatePostgresql
        LABEL = "PostgreSQL"

        # @see Redis.run
        def self.run(durable:)
          raise Child::Failed, "needs PostgreSQL (Debian package postgresql)" unless programs

          require "pg"
          server = new("fsync" => durable ? "on" : "off")
          yield server
        ensure
          server&.stop
        end

        def cut_connections = super("heddle pub/sub")
      end
    end
  end
end
