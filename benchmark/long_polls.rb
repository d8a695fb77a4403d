# frozen_string_literal: true

# ruby benchmark/long_polls.rb [POLLS]
#
# So many requests of Heddle::HTTP::Client wait at once in this process, for answers that `heddle serve` holds back
# until all of them wait. Prints the memory of both processes for each, and whether every request got its own answer.
# The status is 1 if one did not.

require_relative "../bin/support/gem_paths"
require "heddle"
require "rbconfig"

# See above.
class LongPolls
  ROOT = File.expand_path("..", __dir__)
  SERVER = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/heddle", "serve", "--workers", "0", "--port", "0",
            "--no-access-log", "--max-requests"].freeze
  # Descriptors beside the connections.
  SPARE = 200
  # Seconds that nothing takes.
  PATIENCE = 300

  def initialize(polls)
    @polls = polls
  end

  # @return [Boolean] has every request got its answer?
  def run
    raise_descriptor_limit
    serve do |url|
      @control = Heddle::HTTP::Client.new(url, proxy: nil, timeout: PATIENCE)
      @client = Heddle::HTTP::Client.new(url, proxy: nil, max_connections: @polls, timeout: patience)
      Heddle.run { poll }
    end
  end

  private

  def patience = { pool: PATIENCE, connect: PATIENCE, first_byte: PATIENCE, read: PATIENCE }

  def raise_descriptor_limit
    soft, hard = Process.getrlimit(:NOFILE)
    wanted = @polls + SPARE
    return if soft >= wanted

    abort "#{@polls} polls need #{wanted} descriptors, and #{hard} are allowed: see ulimit -n" if hard < wanted

    Process.setrlimit(:NOFILE, wanted, hard) # the server inherits it
  end

  def serve
    server = IO.popen([*SERVER, (@polls + SPARE).to_s, { err: %i[child out] }], chdir: File.join(__dir__, "long_polls"))
    @server = server.pid
    lines = +""
    lines << (server.gets or abort("the server did not start:\n#{lines}")) until lines =~ %r{(http://[^\s/]+:\d+)}
    yield Regexp.last_match(1)
  ensure
    Process.kill(:TERM, server.pid)
    server.close
  end

  def poll
    waiting # both sides are warm
    GC.start
    before = [memory("self"), memory(@server)]
    Heddle.scope do |scope|
      answers = Array.new(@polls) { |number| scope.async { @client.get("/wait?#{number}").body } }
      Heddle.timeout(PATIENCE) { sleep 0.1 until waiting == @polls }
      report(before)
      began = now
      @control.get("/publish")
      count(answers, began)
    end
  end

  def report(before)
    GC.start
    { "client" => "self", "server" => @server }.zip(before) do |(name, process), earlier|
      used = memory(process)
      puts "#{name}: #{@polls} polls wait, #{((used - earlier) / @polls.to_f).round(1)} kB each, #{used / 1_024} MB " \
           "in all (RSS)"
    end
  end

  def count(answers, began)
    right = answers.each_with_index.count { |answer, number| answer.value == "message for #{number}" }
    puts "#{right} of #{@polls} answered, #{(now - began).round(2)} s after the message"
    right == @polls
  end

  def waiting = @control.get("/waiting").body.to_i

  # @return [Integer] resident memory in kB
  def memory(process) = File.read("/proc/#{process}/status")[/^VmRSS:\s+(\d+)/, 1].to_i

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

exit(LongPolls.new(Integer(ARGV.fetch(0, "10_000"))).run)
