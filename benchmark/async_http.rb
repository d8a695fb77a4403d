#!/usr/bin/env ruby
# frozen_string_literal: true

# async-http, client and server in one loop: on async's reactor with io-event's C extension, and on Heddle's loop.
#
#   ruby benchmark/async_http.rb [rounds]
#
# Each run is a process of its own; the two take turns. Printed are the medians of the rounds, in requests a second, and
# what each round measured.

require_relative "../bin/support/gem_paths"
require "json"
require "rbconfig"
require_relative "../test/support/free_port"

# What one process does.
module AsyncHttp
  TASKS = 20
  WARM_UP = 1_000
  REQUESTS = 8_000

  module_function

  def run(way)
    require way == "heddle" ? "heddle/async/reactor" : "async"
    require "async/http"
    require "async/barrier"
    Sync { |task| measure(task) }
  end

  def measure(task)
    port = FreePort.find
    endpoint = Async::HTTP::Endpoint.parse("http://127.0.0.1:#{port}")
    answer = ->(_) { Protocol::HTTP::Response[200, { "content-type" => "text/plain" }, ["hello, world\n"]] }
    server = task.async { Async::HTTP::Server.for(endpoint, &answer).run }
    client = Async::HTTP::Client.new(endpoint)
    get(client, WARM_UP)
    wall = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    get(client, REQUESTS)
    wall = Process.clock_gettime(Process::CLOCK_MONOTONIC) - wall
    cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu
    { rate: REQUESTS / wall, cpu: cpu / REQUESTS * 1e6, loop: loop_name }
  ensure
    client&.close
    server&.stop
  end

  def loop_name
    scheduler = Fiber.scheduler
    return "Heddle, #{scheduler.selector}" if scheduler.respond_to?(:selector)

    "async, #{scheduler.instance_variable_get(:@selector).class.name}"
  end

  def get(client, count)
    barrier = Async::Barrier.new
    TASKS.times { barrier.async { (count / TASKS).times { client.get("/").read } } }
    barrier.wait
  end
end

if ARGV.first == "--way"
  puts JSON.generate(AsyncHttp.run(ARGV.last))
  exit
end

WAYS = %w[async heddle].freeze
rounds = Integer(ARGV.first || 5)
results = WAYS.to_h { |way| [way, []] }
rounds.times do
  WAYS.each { |way| results[way] << JSON.parse(IO.popen([RbConfig.ruby, __FILE__, "--way", way], &:read)) }
end
median = ->(values) { values.sort[values.size / 2] }
rates = results.transform_values { |found| found.map { |one| one.fetch("rate") } }
WAYS.each do |way|
  cpu = median.call(results[way].map { |one| one.fetch("cpu") })
  puts "#{way.ljust(7)} #{median.call(rates[way]).round} requests/s, #{cpu.round} µs of CPU each; " \
       "rounds: #{rates[way].map(&:round).join(" ")} (#{results[way].first.fetch("loop")})"
end
puts "Heddle / async: #{(median.call(rates["heddle"]) / median.call(rates["async"])).round(2)}"
