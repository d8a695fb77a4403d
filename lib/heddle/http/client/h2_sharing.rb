# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The HTTP/2 connection that all requests to an {OriginPool} share. The first request opens it and so finds out
      # whether the server speaks HTTP/2. Requests that come meanwhile wait for the result.
      #
      # @api private
      class H2Sharing
        include MonotonicClock

        # A request that needs a connection. `given`: the connection that is reserved for the request; `waited`: whether
        # the request has been in the queue; `over`: whether its wait has ended by itself, with a result or with the
        # error of the request that tried to open the connection. A wait is not over if an exception has interrupted it,
        # or if its time limit has passed.
        class Waiter
          attr_reader :queue
          attr_accessor :given, :waited, :over

          def initialize
            @queue = Thread::Queue.new
            @given = @waited = @over = nil
            @began = {}
          end

          # @param dialing [Boolean] whether the request waits for a connection that is being opened. The time of these
          #   waits is limited separately from the time of other waits
          # @return [Numeric, nil] seconds that are left of the limit; nil: there is no limit
          def left(limit, dialing, now) = limit && [(@began[dialing] ||= now) + limit - now, 0].max
        end
        BUSY = [PoolTimeoutError, "the server allowed no more requests at a time, and none had ended"].freeze
        private_constant :Waiter, :BUSY

        # @param open [#call] takes time limits and a deadline; returns a {SharedConnection}, or a {Connection} if the
        #   server speaks HTTP/1.1
        def initialize(origin, &open)
          @origin = origin
          @open = open
          @lock = Lock.new
          @waiters = []
          # connection => number of its requests. Connections that accept no new requests are included.
          @reserved = Hash.new(0).compare_by_identity
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

        # Called when a request has ended. Closes the connection if it has no other requests and accepts no new ones.
        # @param connection [SharedConnection]
        # @return [Boolean] whether the connection is closed now
        def release(connection)
          over = @lock.synchronize do
            unreserve(connection)
            @reserved[connection].zero? && (@refused || connection.leaving?) && forget(connection)
          end
          connection.close if over
          over
        end

        # Called when the server has required HTTP/1.1. All further requests use it.
        # @return [void]
        def refuse
          @lock.synchronize do
            @refused = true
            wake_all
          end
        end

        # Checks the connections that no fiber reads. Closes a connection without requests if it accepts no new ones or
        # has been idle since `limit`.
        # @param limit [Float] in seconds of CLOCK_MONOTONIC
        # @return [Integer] number of closed connections
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

        # @return [Integer] number of requests that wait for a connection
        def waiting = @lock.synchronize { @waiters.size }

        private

        # @return [SharedConnection, Symbol, nil] :dial: open a connection; :wait: wait in the queue; nil: the server
        #   speaks HTTP/1.1
        def choose(waiter)
          return waiter.given if waiter.given || @refused

          if @connection
            @connection.attend if @reserved[@connection].zero? # the server may have closed it while no fiber read
            @connection = nil if @connection.leaving?
          end
          return @dialing = :dial unless @connection || @dialing

          enqueue(waiter) unless @waiters.include?(waiter)
          serve_waiters
          waiter.given || :wait
        end

        # A request that was woken but got no connection goes back to the front of the queue.
        def enqueue(waiter)
          waiter.waited ? @waiters.unshift(waiter) : @waiters.push(waiter)
          waiter.waited = true
        end

        # Gives the connection to waiting requests in the order of their arrival. New requests join the same queue, so
        # they can't overtake.
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
          # The woken request opens a new connection.
          wake_one unless @dialing || (@connection && !@connection.leaving?)
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

        # Wakes all waiting requests. If an error is given, each of them raises it.
        def wake_all(error = nil)
          @waiters.each { |waiter| waiter.queue.push(error || true) }
          @waiters.clear
        end

        # Waits until the waiter has a connection or must call `choose` again.
        # @return [void]
        def wait(waiter, limits, deadline)
          dialing = @dialing
          limit = waiter.left(dialing ? dialing_time(limits) : limits.pool, dialing, now)
          time = TimeLimits.left(limit, deadline)
          woken = waiter.queue.pop(timeout: time)
          waiter.over = woken.is_a?(Error)
          raise woken.class, woken.message if waiter.over
          return if woken

          phase, why = dialing ? [ConnectTimeoutError, "another request was still opening the connection"] : BUSY
          raise time == limit ? phase : TotalTimeoutError, "#{@origin}: #{why} when this request's time limit passed"
        end

        # How long to wait while another request opens the connection: a second longer than that request may take. The
        # time limit `pool` applies only to a busy connection.
        def dialing_time(limits) = limits.connect && limits.tls && (limits.connect + limits.tls + 1)

        # Called when the request was interrupted, or its time limit has passed. Removes the request from the queue. If
        # the request already got a connection, gives it to the next waiting request. If it was only woken, wakes the
        # next one.
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
