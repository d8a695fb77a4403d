#!/usr/bin/env ruby
# frozen_string_literal: true

# Queries of ten seconds that are abandoned in each way there is, with a pool of one connection: how long until the next
# query of that pool is answered, and until the server runs the abandoned one no more.
#
#   ruby benchmark/abandoned_queries.rb [rounds]
#
# Printed for each library and driver: the median and the longest of all ways and rounds, in milliseconds. The programs
# are those of test/databases, on private servers. Then the same of connections and queries without Heddle, made beside
# them: an abandoned query takes a few of each.

require_relative "../bin/support/gem_paths"
$LOAD_PATH.unshift(File.expand_path("../test", __dir__))
require "json"
require "rbconfig"
require "support/private_mariadb"
require "support/private_postgresql"
require "pg"
require "trilogy"

# Runs the programs.
module AbandonedQueries
  FOLDER = File.expand_path("../test/databases", __dir__)
  COMMAND = [RbConfig.ruby, "-r", File.expand_path("../bin/support/gem_paths.rb", __dir__),
             "-I", File.expand_path("../lib", __dir__)].freeze
  PROGRAMS = %w[abandoned_program disconnect_program].freeze
  FORMAT = "%-13s %-8s %6d %10.1f %9.1f %10.1f %9.1f\n"
  PLAIN_FORMAT = "%-22s %6d %10.1f %9.1f\n"
  # Plain connections beside each program.
  PLAIN = 20

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
      median_and_longest(found.map { |one| one.fetch(key) })
    end
    printf(FORMAT, library, driver, found.size, *figures)
  end

  def median_and_longest(seconds)
    sorted = seconds.sort
    [sorted[sorted.size / 2] * 1000, sorted.last * 1000]
  end

  # Connects, asks and closes while the block runs.
  # @param plain [Hash{String => Array<Float>}] gets the seconds
  # @param connect [Hash{String => #call}] by the database's name
  def beside(plain, connect)
    thread = Thread.new { PLAIN.times { connect.each { |name, open| try(plain, name, open) } } }
    yield.tap { thread.join }
  end

  def try(plain, name, open)
    connection = nil
    plain["#{name}: connect"] << seconds { connection = open.call }
    plain["#{name}: SELECT 1"] << seconds { connection.query("SELECT 1") }
    connection.close
  end

  def seconds
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    yield
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
  end
end

rounds = Integer(ARGV.first || 3)
postgresql = PrivatePostgresql.new
mariadb = PrivateMariadb.new
plain = Hash.new { |found, name| found[name] = [] }
connect = { "PostgreSQL" => -> { postgresql.connect }, "MariaDB" => -> { Trilogy.new(socket: mariadb.socket) } }
begin
  puts "library       driver   abandoned  next, ms  longest   gone, ms  longest"
  %w[pool active_record sequel].product(%w[pg trilogy mysql2]) do |library, driver|
    address = driver == "pg" ? postgresql.url : mariadb.socket
    found = Array.new(rounds) do
      AbandonedQueries.beside(plain, connect) { AbandonedQueries.run(library, driver, address) }
    end
    AbandonedQueries.report(library, driver, found.flatten)
  end
  puts "", "without Heddle          times         ms   longest"
  plain.each { |name, found| printf(AbandonedQueries::PLAIN_FORMAT, name, found.size, *AbandonedQueries.median_and_longest(found)) }
ensure
  [postgresql, mariadb].each(&:stop)
end
