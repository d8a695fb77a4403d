# frozen_string_literal: true

# Active Record's asynchronous queries, and tasks inside a transaction. Prints as JSON what it saw.

require_relative "support/access"
require "json"
require "stringio"

class Number < ActiveRecord::Base; end

seen = {}
Heddle.run do
  ACCESS.value("CREATE TABLE IF NOT EXISTS numbers (id int PRIMARY KEY)")
  ACCESS.value("DELETE FROM numbers")
  ACCESS.value("INSERT INTO numbers VALUES (1)")
  pool = ActiveRecord::Base.connection_pool
  slow = -> { Number.select("id, pg_sleep(2)::text AS mark_async") }

  # Within a session, as Rails opens one for each request.
  ActiveRecord::Base.asynchronous_queries_tracker.start_session
  began = now
  futures = Array.new(3) { slow.call.load_async }
  seen[:returned] = now - began
  began = now
  sleep 0.001 until (seen[:at_once] = Observer.running("mark_async")) == 3 || now - began > 30
  seen[:async] = futures.map { |future| future.to_a.map(&:id) }
  seen[:counted] = Number.async_count.value
  unfinished = Heddle.scope do
    slow.call.load_async.tap { sleep 0.001 until Observer.running("mark_async").positive? }
  end
  seen[:unfinished] = begin
    unfinished.to_a.map(&:id)
  rescue NoMethodError => e
    e.message
  end
  # Its task gets no connection, so the fiber that asks for the result runs it.
  pool.lease_connection
  others = Array.new(pool.size - pool.stat[:busy]) { pool.checkout }
  promise = Number.where("pg_sleep(2) IS NOT NULL").async_count
  seen[:limited] = Array.new(2) do |again|
    Heddle.timeout(again.zero? ? 0.1 : 60) { promise.value }
  rescue Heddle::TimeoutError
    "too late"
  end
  others.each { |one| pool.checkin(one) }
  pool.release_connection
  ActiveRecord::Base.asynchronous_queries_tracker.finalize_session
  seen[:without_session] = Number.all.load_async.to_a.size

  # A child of a task in a transaction has a connection of its own.
  ActiveRecord::Base.transaction do
    Number.create!(id: 2)
    kept = $stderr
    $stderr = StringIO.new
    seen[:child_sees] = Heddle.async { Number.count }.value
    seen[:warned] = $stderr.string
    $stderr = kept
    seen[:parent_sees] = Number.count
    raise ActiveRecord::Rollback
  end

  # No connection is left, and none will come back.
  lease = lambda do |depth|
    ActiveRecord::Base.transaction do
      Number.count
      Heddle.scope { |scope| scope.async { depth == 1 ? Number.count : lease.call(depth - 1) } }
    end
  end
  began = now
  begin
    lease.call(pool.size)
  rescue ActiveRecord::ConnectionTimeoutError => e
    seen[:nested] = e.message
    seen[:nested_is_heddles] = e.is_a?(Heddle::Error)
  end
  seen[:nested_took] = now - began
  seen[:pools] = Heddle::Databases::Pools.all

  # Each of the tasks that hold all connections waits, later, for a child which asks for one.
  began = now
  seen[:nested_later] = Heddle.map(1..pool.size) do
    Heddle.supervise(on_failure: ->(*) {}) do
      ActiveRecord::Base.transaction do
        Number.count
        child = Heddle.async { Number.count }
        sleep 0.001 until pool.stat[:waiting] == pool.size
        child.value
      end
    end
  rescue ActiveRecord::ConnectionTimeoutError
    :error
  end
  seen[:nested_later_took] = now - began

  # Tasks that wait, none of them within a task that has a connection: how often one waits, and looks at a connection.
  looks = Hash.new(0)
  looking = TracePoint.new(:call) { |point| looks[point.method_id] += 1 }
  looking.enable { Heddle.map(1..20) { ACCESS.value("SELECT pg_sleep(0.001)") } }
  seen[:looks] = looks.values_at(:inside_holder?, :blocks?)

  # As in production: a fiber that is no task has taken all connections, and asks for one more.
  Heddle::Pool.report_held_connections = false
  began = now
  asked = Thread::Queue.new
  Fiber.schedule do
    taken = Array.new(pool.size) { pool.checkout }
    pool.checkout
  rescue StandardError => e
    asked << e.message
  ensure
    taken.each { |connection| pool.checkin(connection) }
  end
  seen[:plain] = asked.pop
  seen[:plain_took] = now - began

  # The application has chosen threads.
  ActiveRecord.async_query_executor = :global_thread_pool
  ACCESS.connect
  ActiveRecord::Base.asynchronous_queries_tracker.start_session
  seen[:in_threads] = Number.where(id: 1).load_async.to_a.map(&:id)
  ActiveRecord::Base.asynchronous_queries_tracker.finalize_session
  seen[:threads_tasks] = ActiveRecord.global_thread_pool_async_query_executor.scheduled_task_count
end
puts JSON.generate(seen)
