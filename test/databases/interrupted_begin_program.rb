# frozen_string_literal: true

# A task is interrupted in the moment in which the server has carried out its BEGIN. Prints as JSON the state of the
# connection afterwards, for a task that was cancelled, one that was killed, and a fiber that keeps its connection.

require_relative "support/access"
require_relative "support/interruption"
require "json"

# Put before PG::Connection.
module Interrupting
  def async_exec(sql, ...)
    answer = super
    Interruption.strike if sql == "BEGIN"
    answer
  end
  PG::Connection.prepend(self)
end

def transaction = ActiveRecord::Base.transaction { ACCESS.value("SELECT 1") }

def status = ACCESS.raw(&:transaction_status)

def cancelled
  Interruption.next = lambda do
    Heddle::Task.current.cancel
    sleep 0
  end
  Heddle.async { transaction }.wait
  status
end

def killed
  Interruption.next = lambda do
    fiber = Fiber.current
    Fiber.schedule { fiber.kill }
    sleep
  end
  Heddle.async { transaction }.wait
  status
end

def kept
  ActiveRecord::Base.lease_connection
  Interruption.next = -> { raise Timeout::Error }
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
