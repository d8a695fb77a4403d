# frozen_string_literal: true

# Active Record's pools of a worker with `max_total: 3`, beside another worker. Prints as JSON, after each way in which
# connections are opened and closed, how many shares the worker has and how many connections the server counts.

require_relative "support/access"
require "heddle/net"
require "json"

SCOREBOARD = Heddle::Net::Scoreboard.new(2)
2.times { |slot| SCOREBOARD.claim(1, slot) }
Heddle::Pool::Registry.sharing = Heddle::Net::PoolShares.new(SCOREBOARD, 0)

CONFIG = ActiveRecord::Base.connection_db_config.configuration_hash
                           .merge(pool: 4, max_total: "3", checkout_timeout: 10, reaping_frequency: nil)
ActiveRecord::Base.establish_connection(CONFIG)

# The other worker.
module Other
  @share = Heddle::Net::PoolShares.new(SCOREBOARD, 1).open("Active Record primary #{CONFIG[:database]}", 3)
  @size = 0

  class << self
    # @return [Integer] how many shares it has
    attr_reader :size

    def wait = @share.wait(true)

    def take
      taken = @share.take
      @size += 1 if taken
      taken
    end

    def return_all
      @share.return_one while (@size -= 1) >= 0
      @size = 0
    end
  end
end

COUNT = if DRIVER == "pg"
          "SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        else
          "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID()"
        end
RESULTS = {} # rubocop:disable Style/MutableConstant

# An entry of config/database.yml may have several pools.
class Second < ActiveRecord::Base
  self.abstract_class = true
end

def pool = ActiveRecord::Base.connection_pool

# @return [Integer] how many this worker has
def shares = Heddle::Databases::Pools.all.first.fetch(:size_total) - Other.size

# The server notices a moment later that a connection was closed.
def record(name)
  deadline = now + 10
  sleep 0.01 until (counted = Integer(Observer.ask(COUNT))) == shares || now > deadline
  RESULTS[name] = [shares, counted]
end

def open_some(count = 3, from: pool)
  Array.new(count) { from.checkout.tap { |one| one.select_value("SELECT 1") } }
end

def check_in(connections) = connections.each { |one| one.pool.checkin(one) }

def refusal
  pool.checkout(0.1)
  nil
rescue ActiveRecord::ConnectionTimeoutError => e
  e.message
end

# What the loop of the server does when another worker waits.
def look = Heddle::Pool::Registry.shares_changed

def open_and_close
  held = open_some
  RESULTS[:refusal] = refusal
  record(:open)
  held.pop.throw_away!
  record(:removed)
  pool.remove(held.last.tap(&:disconnect!))
  held.pop
  record(:broken)
  check_in(held)
  pool.flush!
  record(:flushed)
  check_in(open_some)
  pool.disconnect!
  record(:disconnected)
  open_some(1)
  pool.disconnect!
  record(:disconnected_while_leased)
end

def close_by_itself
  Thread.new { open_some(2) }.join
  check_in(open_some(1)) # takes one of the thread's, which has ended
  pool.reap
  pool.clear_reloadable_connections!
  record(:reaped)
  pool.lease_connection.select_value("SELECT 1")
  pool.lease_connection.disconnect!
  pool.lease_connection.select_value("SELECT 1")
  record(:reconnected)
  pool.release_connection
  pool.disconnect!
end

def share_with_another_worker
  held = open_some
  Other.wait
  RESULTS[:kept] = look
  record(:all_in_use)
  pool.checkin(held.pop)
  record(:one_yielded)
  RESULTS[:taken] = Other.take
  check_in(held)
  record(:idle)
  Other.wait
  look
  record(:idle_given)
  RESULTS[:taken_again] = Other.take
  Other.return_all
end

def await_waiter(pool)
  deadline = now + 5
  sleep 0.001 until pool.stat[:waiting] == 1 || now > deadline
end

# A waiting fiber gets the connection that the loop makes when a share is returned.
def wait_for_another_worker
  pool.disconnect!
  Other.wait
  look
  3.times { Other.take }
  waiting = Heddle.async { pool.with_connection { |one| one.select_value("SELECT 7").to_i } }
  await_waiter(pool)
  RESULTS[:waits] = look
  Other.return_all
  look
  RESULTS[:served] = waiting.value
  record(:after_wait)
end

# One pool has all connections idle, and then in use.
def share_with_another_pool
  pool.disconnect!
  Second.establish_connection(CONFIG)
  check_in(open_some)
  waiting = Heddle.async { Second.connection_pool.with_connection { |one| one.select_value("SELECT 7").to_i } }
  await_waiter(Second.connection_pool)
  look
  RESULTS[:second_pool_served] = waiting.value
  record(:second_pool)
  Second.remove_connection
  pool.disconnect!
  record(:pool_removed)
end

def discard
  check_in(open_some)
  reader, writer = IO.pipe
  Process.wait(fork do
    writer.write(Heddle::Databases::ActiveRecord::MaxTotal.of(pool).inspect)
    writer.flush
    exit!
  end)
  writer.close
  RESULTS[:in_a_fork] = reader.read
  record(:after_fork)
  pool.discard!
  look
  RESULTS[:discarded] = SCOREBOARD.shares(0)
end

Heddle.run do
  open_and_close
  close_by_itself
  share_with_another_worker
  wait_for_another_worker
  share_with_another_pool
  discard
end
puts JSON.generate(RESULTS)
