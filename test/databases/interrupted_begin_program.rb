# frozen_string_literal: true

# A task is interrupted in the moment in which the server has carried out its BEGIN. Prints as JSON the state of the
# connection afterwards, for a task that was cancelled, one that was killed, and a fiber that keeps its connection.

require_relative "support/access"
require "json"

# Put before PG::Connection.
module Interrupting
  class << self
    attr_accessor :interrupt
  end

  def async_exec(sql, ...)
    answer = super
    interrupt, Interrupting.interrupt = Interrupting.interrupt, nil if sql == "BEGIN"
    interrupt&.call
    answer
  end
  PG::Connection.prepend(self)
end

def transaction = ActiveRecord::Base.transaction { ACCESS.value("SELECT 1") }

def status = ACCESS.raw(&:transaction_status)

def cancelled
  Interrupting.interrupt = lambda do
    Heddle::Task.current.cancel
    sleep 0
  end
  Heddle.async { transaction }.wait
  status
end

def killed
  Interrupting.interrupt = lambda do
    fiber = Fiber.current
    Fiber.schedule { fiber.kill }
    sleep
  end
  Heddle.async { transaction }.wait
  status
end

def kept
  ActiveRecord::Base.lease_connection
  Interrupting.interrupt = -> { raise Timeout::Error }
  begin
    transaction
  rescue Timeout::Error
    status
  end
ensure
  ActiveRecord::Base.release_connection
end

seen = Heddle.run do
  ACCESS.value("SELECT 1")
  { cancelled: cancelled, killed: killed, kept: kept }
end
puts JSON.generate(seen.merge(idle: PG::PQTRANS_IDLE))
