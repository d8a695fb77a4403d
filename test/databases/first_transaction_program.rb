# frozen_string_literal: true

# The first transaction of a database of Sequel's is interrupted while it asks the server for its version; another one
# may have the answer meanwhile. Prints as JSON for each way how the task ended: nil if it was interrupted.

require_relative "support/access"
require "json"
require_relative "../support/fiber_of"

# Strikes when the question for the version begins to wait, which the server answers late.
module Asked
  class << self
    attr_accessor :interruption
  end

  def fetch_rows(sql)
    return super unless sql.match?(/version/i) && (interruption = Asked.interruption)

    Asked.interruption = nil
    Fiber.scheduler.spawn(interruption)
    super("SELECT CONCAT(VERSION(), IF(SLEEP(0.05), '', ''))")
  end
end

DATABASE = ACCESS.instance_variable_get(:@database)
DATABASE.extend_datasets(Asked)

def interrupt(answered)
  outcome = nil
  DATABASE.instance_variable_set(:@server_version, nil)
  task = Heddle.async do
    outcome = DATABASE.transaction { ACCESS.value("SELECT 42").to_i }
  rescue StandardError => e
    outcome = e.class.name
  end
  Asked.interruption = lambda do
    DATABASE.instance_variable_set(:@server_version, 100_100) if answered
    yield task
  end
  task.wait
  outcome
end

seen = Heddle.run do
  ACCESS.value("SELECT 1")
  [false, true].product([:cancel.to_proc, ->(task) { fiber_of(task).kill }]).map do |answered, way|
    interrupt(answered, &way)
  end
end
puts JSON.generate(outcomes: seen, open: DATABASE.instance_variable_get(:@transactions).size)
