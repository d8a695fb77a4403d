# frozen_string_literal: true

# A task is cancelled, or killed, while a thread has the mutex that Sequel keeps its list of transactions with: when the
# transaction is noted there, and when it is removed. Prints as JSON for each how the task ended, and how many
# transactions Sequel then counts as open.

require_relative "support/access"
require "json"
require_relative "../support/fiber_of"

# The task would wait for the mutex, and end there. So it does without Heddle's part in the mutex.
module Contended
  class << self
    attr_accessor :method, :interruption

    def strike(method)
      return unless method == self.method

      self.method = nil
      locked = interrupted = false
      loop_thread = Thread.current
      @thread = Thread.new do
        Sequel.synchronize { (locked = true) && Thread.pass until interrupted || loop_thread.stop? }
      end
      Thread.pass until locked
      Fiber.scheduler.spawn(-> { (interrupted = true) && interruption.call })
    end

    def await = @thread.join
  end

  private

  %i[add_transaction remove_transaction].each do |name|
    define_method(name) do |*arguments|
      Contended.strike(name)
      super(*arguments)
    end
  end
end

DATABASE = ACCESS.instance_variable_get(:@database)
DATABASE.singleton_class.prepend(Contended)
WAYS = { cancel: :cancel.to_proc, kill: ->(task) { fiber_of(task)&.kill } }.freeze

def interrupted(method, way)
  outcome = nil
  task = Heddle.async do
    outcome = DATABASE.transaction { ACCESS.value("SELECT 42").to_i }
  rescue StandardError => e
    outcome = e.class.name
  end
  Contended.method = method
  Contended.interruption = -> { way.call(task) }
  task.wait
  Contended.await
  [outcome, DATABASE.instance_variable_get(:@transactions).size]
end

seen = Heddle.run do
  ACCESS.value("SELECT 1")
  %i[add_transaction remove_transaction].product(WAYS.to_a).to_h do |method, (name, way)|
    ["#{name} #{method}", interrupted(method, way)]
  end
end
puts JSON.generate(seen)
