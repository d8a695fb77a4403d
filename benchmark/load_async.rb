#!/usr/bin/env ruby
# frozen_string_literal: true

# Active Record's load_async without configuration: three queries of 0.3 s in tasks of the loop.
#
#   ruby benchmark/load_async.rb [rounds]
#
# Printed are the seconds until all three have their rows, of each round; and those of the first, which opens the
# connections.

require_relative "../bin/support/gem_paths"
$LOAD_PATH.unshift(File.expand_path("../test", __dir__))
require "support/private_postgresql"
require "active_record"
require "pg"
require "heddle"

# Any table will do.
class Type < ActiveRecord::Base
  self.table_name = "pg_type"
end

def run_three
  began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  tracker = ActiveRecord::Base.asynchronous_queries_tracker # a request of Rails has such a session
  tracker.start_session
  Array.new(3) { Type.select("oid, pg_sleep(0.3)::text").limit(1).load_async }.each(&:to_a)
  tracker.finalize_session
  (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).round(3)
end

ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
server = PrivatePostgresql.new
begin
  ActiveRecord::Base.establish_connection("#{server.url}&pool=5")
  rounds = Integer(ARGV.first || 5)
  seconds = Heddle.run { Array.new(rounds + 1) { run_three } }
  puts "first: #{seconds.shift} s; then: #{seconds.join(", ")} s"
ensure
  ActiveRecord::Base.connection_handler.clear_all_connections!
  server.stop
end
