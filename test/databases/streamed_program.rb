# frozen_string_literal: true

# A streamed result of mysql2 is left before its end: by the block, by a time limit within the check-out, by one around
# it, and by a kill. Prints as JSON what the next query was answered each time, or its error, and whether one that was
# read to its end, and one that was freed, keep the connection.

require_relative "support/access"
require "json"
require_relative "../support/fiber_of"

def stream(&block)
  ACCESS.raw { |connection| read(connection, &block) }
end

def read(connection, &) = connection.query("SELECT 1 UNION SELECT 2", stream: true, cache_rows: false).each(&)

def free(connection) = connection.query("SELECT 1 UNION SELECT 2", stream: true, cache_rows: false).free

def next_answer
  ACCESS.value("SELECT 42").to_i
rescue StandardError => e
  e.message
end

def limited
  Heddle.timeout(0.01) { yield -> { sleep } }
rescue Heddle::TimeoutError
  nil
end

def kill_amid
  amid = false
  task = Heddle.async { stream { (amid = true) && sleep } }
  Fiber.scheduler.yield until amid
  fiber_of(task).kill
end

LEAVING = {
  block: -> { stream { break } },
  within: -> { ACCESS.raw { |connection| limited { |wait| read(connection) { wait.call } } } },
  around: -> { limited { |wait| stream { wait.call } } },
  kill: -> { kill_amid }
}.freeze

def kept?
  before = ACCESS.value("SELECT CONNECTION_ID()")
  yield
  ACCESS.value("SELECT CONNECTION_ID()") == before
end

seen = Heddle.run do
  kept = [kept? { stream { nil } }, kept? { ACCESS.raw { |connection| free(connection) } }]
  { kept:, **LEAVING.transform_values { |leave| [leave.call, next_answer].last } }
end
puts JSON.generate(seen)
