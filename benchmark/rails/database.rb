# frozen_string_literal: true

require "pg"
$LOAD_PATH.unshift(File.join(Bench::ROOT, "test"))
require "support/private_postgresql"

module Bench
  module RailsPage
    # The PostgreSQL of the benchmark, the same one for all servers, started when it is first needed.
    module Database
      NOTES = 100

      module_function

      # @return [Boolean] whether this machine has a PostgreSQL
      def installed? = !PrivatePostgresql.programs.nil?

      # @return [String]
      def url = @url ||= start

      def start
        server = PrivatePostgresql.new
        at_exit { server.stop }
        connection = server.connect
        connection.exec("CREATE TABLE notes (id bigserial PRIMARY KEY, text varchar NOT NULL)")
        NOTES.times { |number| connection.exec_params("INSERT INTO notes (text) VALUES ($1)", ["note #{number}"]) }
        connection.close
        server.url
      end
      private_class_method :start
    end
  end
end
