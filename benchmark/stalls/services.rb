# frozen_string_literal: true

require "tempfile"
require_relative "libraries"
$LOAD_PATH.unshift(File.join(Bench::ROOT, "test"))
require "support/private_mariadb"
require "support/private_postgresql"

module Bench
  module Stalls
    # What requests wait for: Debian's databases, and a server that answers late, each started for one row.
    module Services
      # @param name [Symbol]
      # @yieldparam environment [Hash] that says where it is
      # @raise [Child::Failed] where it is not installed
      def self.during(name, &) = send(name, &)

      class << self
        private

        def postgresql
          raise Child::Failed, "needs PostgreSQL (Debian package postgresql)" unless PrivatePostgresql.programs

          require "pg"
          running(PrivatePostgresql.new) { |server| yield({ Libraries::POSTGRESQL => server.url }) }
        end

        def mariadb
          raise Child::Failed, "needs MariaDB (Debian package mariadb-server-core)" unless PrivateMariadb.program

          running(PrivateMariadb.new) { |server| yield({ Libraries::MARIADB => server.socket }) }
        end

        def http
          DelayServer.run { |port| yield({ Libraries::HTTP => "http://localhost:#{port}" }) }
        end

        def lock
          Tempfile.create("bench-lock") { |file| yield({ Libraries::LOCK => file.path }) }
        end

        def running(server)
          yield server
        ensure
          server.stop
        end
      end
    end
  end
end
