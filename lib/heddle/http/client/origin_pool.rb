# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # An origin (scheme, host and port), and the pool of the connections to it. All loops and threads of the process
      # share it.
      #
      # @api private
      class OriginPool
        include MonotonicClock

        # @return [String] "http" or "https"
        attr_reader :scheme
        # @return [String] host and port, as in the Host field of a request
        attr_reader :authority
        # @return [ConnectionSettings]
        attr_reader :settings

        # @return [Array<String>] name and value of the field that each request contains for the proxy; empty: there is
        #   no such field
        attr_reader :proxy_fields

        # @param proxy [Proxy, nil]
        # @param dialer [#call] opens a connection, given the time limits and the deadline
        def initialize(scheme, authority, settings, proxy, dialer)
          @scheme = scheme
          @authority = authority
          @settings = settings
          @absolute = proxy && scheme == "http" # RFC 9112, 3.2.2; over TLS the proxy can't read requests
          @proxy_fields = @absolute ? proxy.fields : []
          @dialer = dialer
          @lock = Lock.new
          @idle = []
          @waiters = []
          @open = 0
          @unused_since = now
          @retired = nil
          @sharing = H2Sharing.new(self) { |*times| open_any(*times) } if settings.http2?(scheme) && !@absolute
          @statistics = { requests: 0, opened: 0, waits: 0, stale: 0, wait_seconds: 0.0, connect_seconds: 0.0,
                          answer_seconds: 0.0 }
        end

        # Such as "https://example.com".
        def to_s = "#{@scheme}://#{@authority}"

        # Called when the server requires HTTP/1.1 (RFC 9113, 7: HTTP_1_1_REQUIRED).
        # @return [void]
        def require_http1 = @sharing.refuse

        # @param target [String] path and query
        # @return [String] the target for the request line
        def request_target(target) = @absolute ? "http://#{@authority}#{target}" : target

        # @param fresh [Boolean] whether to open a connection to an HTTP/1.1 server even if one is idle. If the origin
        #   has `max_connections` in use, the request takes the first one that is released
        # @return [Connection, SharedConnection]
        # @raise [Error]
        def acquire(limits, deadline, fresh: false)
          shared = @sharing && acquire_shared(limits, deadline)
          rejoin if shared && @retired
          return shared.is_a?(Connection) ? shared.begin_request(deadline) : shared if shared

          connection = @lock.synchronize { fresh ? make_room : take_idle }
          rejoin if @retired
          connection ||= wait_for_room(limits, deadline)
          return connection.begin_request(deadline) if connection.is_a?(Connection)

          open_connection { Connection.new(http1_dialer.call(limits, deadline)) }.begin_request(deadline)
        end

        # @param connection [Connection] kept if another request can reuse it, closed otherwise
        def release(connection)
          reusable = connection.reusable?
          @lock.synchronize do
            @statistics[:requests] += 1
            if (waiter = @waiters.shift)
              waiter.push(reusable ? connection : :room)
            elsif reusable
              connection.idle_since = now
              @idle.push(connection)
            else
              leave
            end
          end
          connection.close unless reusable
          OriginRegistry.reap_later if reusable
        end

        # @param phase [Symbol] `:wait_seconds`, `:connect_seconds` or `:answer_seconds`
        # @param began [Float] when the phase began, in seconds of CLOCK_MONOTONIC
        # @return [void]
        def count_time(phase, began) = @lock.synchronize { @statistics[phase] += now - began }

        # @param connection [SharedConnection]
        def release_stream(connection)
          over = @sharing.release(connection)
          @lock.synchronize do
            @statistics[:requests] += 1
            pass_room_on if over
          end
          OriginRegistry.reap_later
        end

        # Closes connections that have been idle for too long or that the server has closed.
        # @param all [Boolean] whether to close every idle connection
        # @return [void]
        def close_idle(all: false)
          limit = all ? Float::INFINITY : now - @settings.idle_timeout
          shared = @sharing&.tend(limit) || 0
          gone = nil
          @lock.synchronize do
            gone, @idle = @idle.partition { |one| one.idle_since <= limit || one.stale? }
            count = shared + gone.size
            leave(count) if count.positive?
          end
          gone.each(&:close)
        end

        # Marks this origin as dropped if it has had no connection for `seconds`. {OriginRegistry} calls this method,
        # and then removes the origin from its list.
        # @param key [Object] the origin's key in that list
        # @return [Boolean] whether the origin was marked
        def retire(key, seconds)
          @lock.synchronize do
            unused = @open.zero? && @unused_since <= now - seconds
            @retired = key if unused
            unused
          end
        end

        # Was this origin dropped? If so, another origin may have its key.
        def retired? = !@retired.nil?

        # @return [Hash{Symbol => Numeric}]
        def statistics
          idle, waiting = @sharing ? [@sharing.idle, @sharing.waiting] : [0, 0]
          @lock.synchronize do
            { open: @open, idle: @idle.size + idle, waiting: @waiters.size + waiting, **@statistics }
          end
        end

        private

        # Takes the most recently used idle connection. Closes connections that have been idle for too long, for example
        # after the machine slept, or that the server has closed.
        # @return [Connection, :room, nil] :room: the caller may open a connection; nil: all connections are in use
        def take_idle
          limit = now - @settings.idle_timeout if @idle.any?
          while (connection = @idle.pop)
            return connection unless connection.idle_since <= limit || connection.stale?

            @open -= 1
            @statistics[:stale] += 1
            connection.close
          end
          make_room
        end

        def make_room
          if @open >= @settings.max_connections
            return unless (oldest = @idle.shift)

            oldest.close
            @open -= 1
          end
          @open += 1
          :room
        end

        def leave(count = 1)
          @open -= count
          @unused_since = now if @open.zero?
        end

        # Puts the origin back into the registry, which has dropped it while a request was about to use it.
        def rejoin
          key = @lock.synchronize { @retired.tap { @retired = nil } }
          OriginRegistry.restore(key, self) if key
        end

        # Requests get a connection in the order of their arrival.
        def wait_for_room(limits, deadline)
          waiter = Thread::Queue.new
          room = @lock.synchronize { take_idle || queue(waiter) }
          return room if room

          began = now
          time = TimeLimits.left(limits.pool, deadline)
          room = waiter.pop(timeout: time)
          count_time(:wait_seconds, began)
          return room.is_a?(Connection) ? check_released(room) : room if room

          raise TotalTimeoutError, "no connection to #{self} became free in time" unless time == limits.pool

          raise PoolTimeoutError, "all #{@settings.max_connections} connections to #{self} (`max_connections`) were " \
                                  "in use for longer than the time limit `pool`"
        ensure
          give_up(waiter) if waiter && !room
        end

        # Checks a connection that another request has released. The server may have closed it, or sent bytes after the
        # response.
        # @return [Connection, :room] :room: the connection was closed, and the caller may open another
        def check_released(connection)
          return connection unless connection.stale?

          @lock.synchronize { @statistics[:stale] += 1 }
          connection.close
          :room
        end

        def queue(waiter)
          @statistics[:waits] += 1
          @waiters.push(waiter)
          nil
        end

        # Called when the waiting request was interrupted, or its time limit has passed. If the request was given a
        # connection meanwhile, or the permission to open one, gives it back.
        def give_up(waiter)
          given = @lock.synchronize do
            @waiters.delete(waiter)
            waiter.pop(timeout: 0)
          end
          return unless given

          given.is_a?(Connection) ? release(given) : release_room
        end

        def release_room = @lock.synchronize { pass_room_on }

        def pass_room_on
          (waiter = @waiters.shift) ? waiter.push(:room) : leave
        end

        # @return [SharedConnection, Connection, nil] nil: the server speaks HTTP/1.1
        def acquire_shared(limits, deadline)
          waited = nil
          @sharing.acquire(limits, deadline) do
            waited ||= now
            @lock.synchronize { @statistics[:waits] += 1 }
          end
        ensure
          count_time(:wait_seconds, waited) if waited
        end

        # Opens the first connection to a server whose HTTP version is not known yet.
        def open_any(limits, deadline)
          @lock.synchronize { @open += 1 }
          open_connection do
            socket = @dialer.call(limits, deadline)
            speaks_http2?(socket) ? SharedConnection.new(socket) : Connection.new(socket)
          end
        end

        # @yieldreturn [Connection, SharedConnection]
        def open_connection
          began = now
          connection = yield
          @lock.synchronize { @statistics[:opened] += 1 }
          count_time(:connect_seconds, began)
          connection
        ensure
          release_room unless connection
        end

        def speaks_http2?(socket)
          @settings.http2 == :prior_knowledge || socket.application_protocol == "h2"
        end

        # Offers only HTTP/1.1: the server has selected or required it before, but might select HTTP/2 for a new
        # connection.
        def http1_dialer = @sharing ? (@http1_dialer ||= @dialer.without_http2) : @dialer
      end
    end
  end
end
