#!/usr/bin/env ruby
# frozen_string_literal: true

# Queries of ten seconds that are abandoned in each way there is, with a pool of one connection: how long until the next
# query of that pool is answered, and until the server runs the abandoned one no more.
#
#   ruby benchmark/abandoned_queries.rb [rounds]
#
# Printed for each library and driver: the median and the longest of all ways and rounds, in milliseconds. The programs
# are those of test/databases, on private servers.

require_relative "../bin/support/gem_paths"
$LOAD_PATH.unshift(File.expand_path("../test", __dir__))
require "json"
require "rbconfig"
require "support/private_mariadb"
require "support/private_postgresql"
require "pg"

# Runs the programs.
module AbandonedQueries
  FOLDER = File.expand_path("../test/databases", __dir__)
  COMMAND = [RbConfig.ruby, "-r", File.expand_path("../bin/support/gem_paths.rb", __dir__),
             "-I", File.expand_path("../lib", __dir__)].freeze
  PROGRAMS = %w[abandoned_program disconnect_program].freeze
  FORMAT = "%-13s %-8s %6d %10.1f %9.1f %10.1f %9.1f\n"

  module_function

  # @return [Hash{String => Array<Hash>}] by program and way: `next` and `gone`, in seconds
  def run(library, driver, address)
    PROGRAMS.flat_map do |program|
      output = IO.popen([*COMMAND, File.join(FOLDER, "#{program}.rb"), library, driver, address, "1"], &:read)
      JSON.parse(output.lines.last).values
    end
  end

  def report(library, driver, found)
    figures = %w[next gone].flat_map do |key|
      sorted = found.map { |one| one.fetch(key) * 1000 }.sort
      [sorted[sorted.size / 2], sorted.last]
    end
    printf(FORMAT, library, driver, found.size, *figures)
  end
end

rounds = Integer(ARGV.first || 3)
postgresql = PrivatePostgresql.new
mariadb = PrivateMariadb.new
begin
  puts "library       driver   abandoned  next, ms  longest   gone, ms  longest"
  %w[pool active_record sequel].product(%w[pg trilogy mysql2]) do |library, driver|
    address = driver == "pg" ? postgresql.url : mariadb.socket
    found = Array.new(rounds) { AbandonedQueries.run(library, driver, address) }.flatten
    AbandonedQueries.report(library, driver, found)
  end
ensure
  [postgresql, mariadb].each(&:stop)
end
