# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The connection of an {Origin} that all requests share if the server speaks HTTP/2. The first request finds out
      # whether it does. Requests that come meanwhile wait for the result.
      #
      # @api private
      class H2Sharing
        include MonotonicClock

        # A request that wants a connection. `given`: the connection that is reserved for it; `waited`: has it been in
        # the queue? `over`: it has a connection, or the error that all others get, too.
        class Waiter
          attr_reader :queue
          attr_accessor :given, :waited, :over

          def initialize
            @queue = Thread::Queue.new
            @given = @waited = @over = nil
            @began = {}
          end

          # @return [Numeric, nil] seconds that are left of the limit on all waits of this request, or on those for a
          #   connection that is being opened
          def left(limit, dialing, now) = limit && [(@began[dialing] ||= now) + limit - now, 0].max
        end
        private_constant :Waiter

        # @param open [#call] takes time limits and a deadline; returns a {SharedConnection}, or a {Connection} if the
        #   server speaks HTTP/1.1
        def initialize(origin, &open)
          @origin = origin
          @open = open
          @lock = Mutex.new
          @waiters = []
          @reserved = Hash.new(0).compare_by_identity # connection => requests; those that are leaving, too
          @connection = nil
          @dialing = @refused = false
        end

        # @yield each time that the request has to wait
        # @return [SharedConnection, Connection, nil] nil: the server speaks HTTP/1.1
        # @raise [Error]
        def acquire(limits, deadline)
          waiter = Waiter.new
          while (found = @lock.synchronize { choose(waiter) }) == :wait
            yield
            wait(waiter, limits, deadline)
          end
          waiter.over = true # the request that dials wakes the others itself
          found == :dial ? dial(limits, deadline) : found
        ensure
          give_up(waiter) unless waiter.over
        end

        # A request has ended.
        # @param connection [SharedConnection]
        # @return [Boolean] whether the connection has ended with it
        def release(connection)
          over = @lock.synchronize do
            unreserve(connection)
            @reserved[connection].zero? && (@refused || connection.leaving?) && forget(connection)
          end
          connection.close if over
          over
        end

        # Called when the server requires HTTP/1.1 for all further requests.
        # @return [void]
        def refuse
          @lock.synchronize do
            @refused = true
            wake_all
          end
        end

        # Checks connections that no fiber reads, and closes those that have been idle since `limit`.
        # @param limit [Float] by CLOCK_MONOTONIC
        # @return [Integer] how many are closed
        def tend(limit)
          @lock.synchronize { @reserved.keys }.each(&:attend)
          closed = @lock.synchronize do
            idle = @reserved.select { |one, count| count.zero? && (one.leaving? || one.idle_since <= limit) }.keys
            idle.each { |connection| forget(connection) }
          end
          closed.each(&:close).size
        end

        # @return [Integer] connections without requests
        def idle = @lock.synchronize { @reserved.count { |_, count| count.zero? } }

        # @return [Integer] requests that wait for the server to take them
        def waiting = @lock.synchronize { @waiters.size }

        private

        # @return [SharedConnection, Symbol, nil] :dial, or :wait; nil: the server speaks HTTP/1.1
        def choose(waiter)
          return waiter.given if waiter.given || @refused

          if @connection
            @connection.attend if @reserved[@connection].zero? # it may have ended while no fiber read
            @connection = nil if @connection.leaving?
          end
          return @dialing = :dial unless @connection || @dialing

          enqueue(waiter) unless @waiters.include?(waiter)
          serve_waiters
          waiter.given || :wait
        end

        # A request that was woken but not served keeps its place.
        def enqueue(waiter)
          waiter.waited ? @waiters.unshift(waiter) : @waiters.push(waiter)
          waiter.waited = true
        end

        # In the order of arrival: a request that begins when another one ends does not overtake those that wait.
        def serve_waiters
          while @waiters.any? && @connection && !@connection.leaving? &&
                @connection.room_beside?(@reserved[@connection])
            waiter = @waiters.shift
            waiter.given = reserve(@connection)
            waiter.queue.push(true)
          end
        end

        def unreserve(connection)
          @reserved[connection] -= 1
          connection.idle_since = now
          serve_waiters
          wake_one unless @dialing || (@connection && !@connection.leaving?) # to open another one
        end

        def reserve(connection)
          @reserved[connection] += 1
          connection
        end

        def forget(connection)
          @connection = nil if @connection.equal?(connection)
          @reserved.delete(connection)
          true
        end

        def dial(limits, deadline)
          connection = @open.call(limits, deadline)
        rescue Error => e
          raise
        ensure
          @lock.synchronize do
            @dialing = false
            @refused ||= connection.is_a?(Connection)
            reserve(@connection = connection) if connection.is_a?(SharedConnection)
            connection || e.is_a?(ConnectError) ? wake_all(e) : wake_one
          end
        end

        def wake_one = @waiters.shift&.queue&.push(true)

        # Wakes all waiting requests. With an error, they fail, too.
        def wake_all(error = nil)
          @waiters.each { |waiter| waiter.queue.push(error || true) }
          @waiters.clear
        end

        # Waits until the waiter is served, or has to choose again.
        # @return [void]
        def wait(waiter, limits, deadline)
          dialing = @dialing
          limit = waiter.left(dialing ? dialing_time(limits) : limits.pool, dialing, now)
          time = TimeLimits.left(limit, deadline)
          woken = waiter.queue.pop(timeout: time)
          waiter.over = woken.is_a?(Error)
          raise woken.class, woken.message if waiter.over
          return if woken

          raise TotalTimeoutError, "#{@origin} accepted no further request in time" unless time == limit

          raise PoolTimeoutError, "#{@origin} allows no more concurrent requests on its connection, and none ended " \
                                  "within the time limit `pool`"
        end

        # A new connection has time limits of its own; the pool's time limit is for a busy server.
        def dialing_time(limits) = limits.connect && limits.tls && (limits.connect + limits.tls + 1)

        # Called for an interrupted request. If it was woken or served already, another one takes its turn or its
        # connection.
        def give_up(waiter)
          @lock.synchronize do
            next if @waiters.delete(waiter)

            waiter.given ? unreserve(waiter.given) : wake_one
          end
        end
      end
    end
  end
end
