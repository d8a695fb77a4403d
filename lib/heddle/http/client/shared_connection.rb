# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # An HTTP/2 connection of an {OriginPool}. All loops and threads of the process may send requests over it at the
      # same time.
      #
      # It has no fiber or thread of its own. One of the fibers and threads that wait for a response is the reader. It
      # reads for all of them, and wakes each of them when data of its response has come. When the reader has its own
      # response, another fiber becomes the reader. While no request waits, {OriginRegistry} checks the connection.
      #
      # @api private
      class SharedConnection
        # @return [Integer] number of requests sent on this connection
        attr_reader :uses
        # @return [Float] when the last request ended, in seconds of CLOCK_MONOTONIC
        attr_accessor :idle_since

        # @param socket [Net::OutboundConnection]
        def initialize(socket)
          @socket = socket
          @session = H2::ClientConnection.new(socket)
          @uses = 0
          @idle_since = MonotonicClock.now
          @waiting = {}.compare_by_identity # stream => queue
        end

        # @return [Carrier]
        def carrier(request, limits, deadline) = H2Carrier.new(self, request, limits, deadline)

        # Begins a request.
        # @param fields [Array<String>] names and values, alternating
        # @param bodiless [Boolean] whether the request has no body
        # @return [H2::ClientStream, nil] nil: the connection accepts no new request, at least for now
        def open(method, scheme, authority, target, fields, bodiless)
          stream = @session.open(method, scheme, authority, target, fields, bodiless)
          @uses += 1 if stream
          stream
        end

        # May a request begin while this many others are under way?
        def room_beside?(count) = count < @session.stream_limit

        # Does the connection accept no new requests?
        def leaving? = @session.leaving? || @socket.closed?

        # Sends pending output. If another caller is already waiting until the socket is writable, that caller sends it,
        # within its own time limit.
        # @param deadline [Float, nil] in seconds of CLOCK_MONOTONIC
        # @raise [IO::TimeoutError]
        def flush(deadline)
          await_room(deadline) or return until @session.flush
        ensure
          wake(@session.waiters) # other requests may wait until the session has room for their output
        end

        # Waits until the block returns true. The block is called whenever the stream has received something.
        # @param stream [H2::ClientStream]
        # @param deadline [Float, nil] in seconds of CLOCK_MONOTONIC
        # @raise [IO::TimeoutError]
        def await(stream, deadline, &)
          return if yield

          begin
            read_for_all { receive(deadline) until yield } or follow(stream, deadline, &)
            done = true
          ensure
            # After an exception, wakes all: it may have prevented the wake-up of requests whose data has come.
            done ? wake_next : wake(@waiting.values)
          end
        end

        # Checks a connection that no fiber reads: responds to PING frames, and closes it if the server has closed it.
        # @return [void]
        def attend
          read_for_all do
            wake(@session.attend)
            close unless @session.open?
          rescue IOError
            close # another thread has closed the socket
          end
        ensure
          wake_next
        end

        # Closes the connection; all its requests fail.
        # @return [void]
        def close = wake(@session.close)

        private

        # Calls the block as the only reader. The ensure clause also covers `begin_reading`, because another thread may
        # raise an exception here at any time.
        # @return [Boolean] false: another fiber is the reader
        def read_for_all
          mine = @session.begin_reading
          yield if mine
          mine
        ensure
          @session.end_reading if mine
        end

        # Waits until the socket is writable.
        # @return [Boolean] false: another fiber already waits, and sends all pending output
        def await_room(deadline)
          mine = @session.begin_sending
          @session.await_room(deadline) if mine
          mine
        ensure
          @session.end_sending if mine
        end

        def receive(deadline)
          wake(@session.receive(deadline))
          close unless @session.open?
        end

        # Waits until the block returns true. Becomes the reader when no other fiber is.
        def follow(stream, deadline)
          queue = stream.waiter = @waiting[stream] = Thread::Queue.new
          until yield # checked only after the registration, so that no wake-up is missed
            read_for_all { receive(deadline) } or sleep_until_woken(queue, deadline)
          end
        ensure
          stream.waiter = nil
          @waiting.delete(stream)
        end

        def sleep_until_woken(queue, deadline)
          left = deadline && (deadline - MonotonicClock.now)
          return if (left.nil? || left.positive?) && queue.pop(timeout: left)

          raise IO::TimeoutError, "the server sent nothing in time"
        end

        def wake(waiters)
          waiters&.each { |queue| queue.push(true) }
        end

        # Wakes a waiting fiber, which becomes the reader.
        def wake_next
          @waiting.first&.last&.push(true) unless @session.reading?
        end
      end
    end
  end
end
