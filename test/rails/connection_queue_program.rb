# frozen_string_literal: true

# Run with the gems of examples/rails_postgresql: tasks that wait for Active Record's connections. Prints what it saw
# as JSON.

require "active_record"
require "active_support/isolated_execution_state"
require "heddle"
require "json"
require_relative "../support/fiber_of"

ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
Heddle::Databases::ActiveRecord::ConnectionQueue.install
ActiveRecord::Base.establish_connection("#{ENV.fetch("DATABASE_URL")}&pool=2&checkout_timeout=20")
POOL = ActiveRecord::Base.connection_pool

def context = Heddle::Concurrency::Context.of(Fiber.current_scheduler)

seen = { waiting: [], order: [] }

Heddle.run do
  context.on_pool_wait = -> { seen[:waiting] << context.pool_waiting }

  # Two hold all there are; eight more wait, and each third of them is cancelled.
  held = Heddle::Promise.new
  2.times { Heddle.async { POOL.with_connection { held.value } } }
  sleep 0 until POOL.stat[:busy] == 2
  tasks = Array.new(8) do |number|
    task = Heddle.async { POOL.with_connection { seen[:order] << number } }
    sleep 0 until context.pool_waiting == number + 1
    task
  end
  tasks.each_slice(3) { |task,| task.cancel }
  held.resolve(true)
  tasks.each_with_index { |task, number| task.wait unless (number % 3).zero? }
  seen[:left_waiting] = context.pool_waiting
end

# Cancelled in the same moment in which they are given a connection: the others must not wait for it.
Heddle.run do
  20.times do
    held = Heddle::Promise.new
    2.times { Heddle.async { POOL.with_connection { held.value } } }
    sleep 0 until POOL.stat[:busy] == 2
    doomed = Array.new(2) { Heddle.async { POOL.with_connection { nil } } }
    sleep 0 until context.pool_waiting == 2
    patient = Array.new(2) { Heddle.async { POOL.with_connection { :served } } }
    sleep 0 until context.pool_waiting == 4
    held.resolve(true)
    doomed.each(&:cancel)
    patient.each(&:value)
  end
  seen[:served] = POOL.stat[:busy].zero?
end

# Killed after they were given a connection, before they have it.
Heddle.run do
  held = Array.new(2) { POOL.checkout }
  doomed = Array.new(2) { Heddle.async { POOL.with_connection { nil } } }
  sleep 0 until context.pool_waiting == 2
  patient = Array.new(2) { Heddle.async { POOL.with_connection { :served } } }
  sleep 0 until context.pool_waiting == 4
  held.zip(doomed) do |connection, task|
    POOL.checkin(connection)
    fiber_of(task).kill
  end
  20.times { sleep 0 }
  seen[:served_after_kill] = patient.count { |task| task.state == :finished }
end

# Transactions of twenty tasks, each its own; every other one is rolled back while the others wait.
Heddle.run do
  POOL.with_connection { |connection| connection.execute("CREATE TABLE numbers (number int)") }
  Heddle.map(1..20) do |number|
    ActiveRecord::Base.transaction do
      connection = ActiveRecord::Base.lease_connection
      connection.execute("INSERT INTO numbers VALUES (#{number})")
      sleep 0.01
      connection.execute("INSERT INTO numbers VALUES (#{number})")
      raise ActiveRecord::Rollback if number.odd?
    end
  ensure
    POOL.release_connection
  end
  seen[:kept] = POOL.with_connection do |connection|
    connection.select_values("DELETE FROM numbers RETURNING number").sort.tally
  end
end
POOL.with_connection { |connection| connection.execute("DROP TABLE numbers") }

puts JSON.generate(seen)
