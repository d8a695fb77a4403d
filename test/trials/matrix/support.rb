# frozen_string_literal: true

# Loaded before each program of the matrix: all protections are on, and eight tasks of one loop are its clients. The
# program prints what it proves; one that raises, hangs or is killed has failed.

$stdout.sync = true
require "heddle"
Heddle.enable :offload, :preempt
Heddle.enable :stall_report, threshold: 60

CLIENTS = 8
STAND_IN = ENV.fetch("MATRIX_HTTP", nil) # http://127.0.0.1:PORT, see stand_in.rb

# Runs the block in eight tasks at once.
# @return [Array] of what it returned
def clients(&block) = Heddle.run { Heddle.map(0...CLIENTS, &block) }

# Eight requests that the server answers only when all of them are open.
def proves_together(name)
  got = clients { |number| yield("#{STAND_IN}/gate/#{number}").to_s }
  proves("8 requests open at once, each with its own answer", got == (0...CLIENTS).map(&:to_s))
rescue StandardError => e
  abort "#{name}: #{e.class}: #{e.message}"
end

# A response that the server cuts off is an error, whatever its class.
def proves_cut
  got = clients do
    yield("#{STAND_IN}/cut")
    :whole
  rescue StandardError => e
    e.class
  end
  proves("a response that is cut off is an error", !got.include?(:whole))
end

# A request that a time limit ends frees its connection.
def proves_abandoned
  before = left
  clients do
    Heddle.timeout(2) { yield("#{STAND_IN}/slow") }
  rescue Heddle::TimeoutError
    nil
  end
  200.times do
    break if left == before + CLIENTS

    sleep 0.02
  end
  proves("an abandoned request closes its connection", left == before + CLIENTS)
end

# @return [Integer] the clients that have left amid a response so far
def left
  require "net/http"
  Integer(Net::HTTP.get(URI("#{STAND_IN}/left")))
end

# Eight tasks wait for each other within the block: where a call blocks the loop, they never meet.
class Meeting
  def initialize
    @here = 0
    @met = Heddle::Promise.new
  end

  def wait
    @here += 1
    @met.resolve if @here == CLIENTS
    @met.wait
  end
end

# Does the loop run on while the block does? At least one tick of 5 ms in eight such calls.
def proves_others_run(what, &block)
  ticks = 0
  Heddle.run do
    Heddle.scope do |scope|
      scope.async(background: true) { loop { sleep(0.002) && ticks += 1 } }
      Heddle.map(0...CLIENTS, &block)
    end
  end
  proves("#{what}: the loop runs meanwhile", ticks.positive?)
end

def proves(what, true_or_not)
  abort "not so: #{what}" unless true_or_not

  puts "proved: #{what}"
end

# Eight clients of Redis that wait for an element of a list each; they get one when all of them wait.
def proves_blocked_pops(connect)
  require "redis-client"
  observer = RedisClient.config(path: ENV.fetch("MATRIX_REDIS")).new_client
  got = Heddle.run do
    popping = Array.new(CLIENTS) { |number| Heddle.async { yield(connect.call, "list-#{number}") } }
    sleep 0.002 until observer.call("INFO", "clients")[/blocked_clients:(\d+)/, 1] == CLIENTS.to_s
    CLIENTS.times { |number| observer.call("RPUSH", "list-#{number}", number) }
    popping.map(&:value)
  end
  proves("8 blocking calls at once, each with its own answer", got == (0...CLIENTS).map(&:to_s))
end
