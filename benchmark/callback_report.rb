# frozen_string_literal: true

# What the callback report costs (docs/stalls.md): a wait of a fiber, and a request for "hello".
#
#   bin/bench callback_report [rounds] [seconds]
#
# Off and on take turns. Printed are medians of CPU time: of a `sleep 0` on a short stack and in 40 and 200 nested
# calls of Array#map, with nokogiri and openssl loaded; and of a request that `heddle serve` answers while wrk has 64
# connections.

require_relative "../bin/support/gem_paths"
require "etc"
require "openssl"
require "heddle"
require_relative "support/child"
require_relative "support/wrk"
begin
  require "nokogiri"
rescue LoadError
  warn "without the gem nokogiri: with more libraries a wait costs more"
end

# The report off and on, in turns.
module CallbackReportBench
  DEPTHS = [0, 40, 200].freeze
  WAITS = 5_000
  SERVER = File.expand_path("../exe/heddle", __dir__)
  HELLO = "run ->(_env) { [200, { 'content-type' => 'text/plain' }, ['hello']] }\n"
  private_constant :HELLO

  module_function

  # @param depth [Integer] calls of Array#map around the wait
  # @return [Float] µs of CPU a wait
  def wait_cost(depth, report:)
    Heddle.enable(:callback_report) if report
    Heddle.run { nest(depth) { time_waits } }
  ensure
    Heddle.disable(:callback_report) if report
  end

  # Array#map is in C: its frames are what the report has to look at.
  def nest(depth, &block) = depth.zero? ? block.call : [depth - 1].map { |rest| nest(rest, &block) }.first

  def time_waits
    began = cpu
    WAITS.times { sleep 0 }
    (cpu - began) / WAITS * 1e6
  end

  def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

  # @return [Float] µs of CPU a request
  def request_cost(config, seconds, report:)
    serve(config, report) do |url, pid|
      Bench::Wrk.run(url, connections: 64, seconds: 1)
      before = used(pid)
      requests = Bench::Wrk.run(url, connections: 64, seconds:).requests
      (used(pid) - before) / requests * 1e6
    end
  end

  def serve(config, report)
    reader, writer = IO.pipe
    pid = spawn(*Bench::Child.pin(0), RbConfig.ruby, "-r", File.expand_path("../bin/support/gem_paths", __dir__),
                "-I", File.expand_path("../lib", __dir__), SERVER, "serve", config, "--workers", "0", "--port", "0",
                "--no-access-log", "--control", "off", "--protect", report ? "callback_report" : "off",
                out: writer, err: writer)
    writer.close
    lines = []
    url = nil
    url = (lines << reader.gets).last.to_s[%r{http://\S+:\d+}] until url || lines.last.nil? && lines.any?
    url or abort "heddle serve did not start:\n#{lines.join}"
    yield url, pid
  ensure
    Process.kill(:TERM, pid)
    Process.wait(pid)
    reader.close
  end

  # @return [Float] seconds of CPU that the threads of the process have used
  def used(pid) = Dir["/proc/#{pid}/task/*/schedstat"].sum { |file| File.read(file).to_i } / 1e9

  def compare(name, rounds)
    off, on = Array.new(rounds) { [yield(false), yield(true)] }.transpose.map { |costs| costs.sort[costs.size / 2] }
    puts format("%-34<name>s %6.2<off>f µs off  %6.2<on>f µs on  (%+.2<more>f)", name:, off:, on:, more: on - off)
  end

  def run(rounds, seconds)
    DEPTHS.each do |depth|
      name = depth.zero? ? "a wait" : "a wait in #{depth} calls of map"
      compare(name, rounds) { |report| wait_cost(depth, report:) }
    end
    return warn("without wrk there is no row of requests") unless Bench::Wrk.installed?

    Tempfile.create(%w[hello .ru]) do |file|
      file.write(HELLO)
      file.flush
      compare("a request for hello", rounds) { |report| request_cost(file.path, seconds, report:) }
    end
  end
end

CallbackReportBench.run(Integer(ARGV.fetch(0, 3)), Integer(ARGV.fetch(1, 3)))
