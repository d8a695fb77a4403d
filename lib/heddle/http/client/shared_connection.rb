# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # An HTTP/2 connection of an {Origin}: many requests at a time, from all loops and threads of the process.
      #
      # It has no fiber or thread of its own. Among the fibers and threads that wait for a response, one reads for all,
      # and wakes each for which something has come. When the reader has its own response, another becomes the reader.
      # While no request waits, {OriginRegistry} checks the connection.
      #
      # @api private
      class SharedConnection
        # @return [Net::OutboundConnection]
        attr_reader :socket
        # @return [Integer] requests that it has carried
        attr_reader :uses
        # @return [Float] when its last request ended, by CLOCK_MONOTONIC
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
        # @param fields [Array<String>] name, value, name, value
        # @return [H2::ClientStream, nil] nil: the server takes none any more, or none now
        def open(method, scheme, authority, target, fields, bodiless)
          stream = @session.open(method, scheme, authority, target, fields, bodiless)
          @uses += 1 if stream
          stream
        end

        # May a request begin beside this many others?
        def room_beside?(count) = count < @session.stream_limit

        # Can no request begin any more?
        def leaving? = @session.leaving? || @socket.closed?

        # Sends pending output. If another caller waits for the kernel already, that one sends it, within its own time
        # limit.
        # @param deadline [Float, nil] in seconds of CLOCK_MONOTONIC
        # @raise [IO::TimeoutError]
        def flush(deadline)
          await_room(deadline) or return until @session.flush
        ensure
          wake(@session.waiters) # other requests may have waited for the room that this has made
        end

        # Waits until the block returns true. It is called whenever something has come for the stream.
        # @param stream [H2::ClientStream]
        # @param deadline [Float, nil] in seconds of CLOCK_MONOTONIC
        # @raise [IO::TimeoutError]
        def await(stream, deadline, &)
          return if yield

          begin
            read_for_all { receive(deadline) until yield } or follow(stream, deadline, &)
            done = true
          ensure
            # An exception from another thread may come before the requests with new data are woken: then all are.
            done ? wake_next : wake(@waiting.values)
          end
        end

        # For a connection that no fiber reads: answers PINGs, and notices its end.
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

        # Ends all requests under way.
        # @return [void]
        def close = wake(@session.close)

        private

        # Calls the block as the only reader. An exception from another thread may come at any time, so the ensure
        # clause also covers taking the role.
        # @return [Boolean] false: another fiber reads
        def read_for_all
          mine = @session.begin_reading
          yield if mine
          mine
        ensure
          @session.end_reading if mine
        end

        # @return [Boolean] false: another fiber waits, and sends it all
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

        # Waits until woken, or reads when no other fiber does.
        def follow(stream, deadline)
          queue = stream.waiter = @waiting[stream] = Thread::Queue.new
          until yield # called after the waiter is registered, so that nothing is missed
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

        # Makes another waiting fiber read, if there is one.
        def wake_next
          @waiting.first&.last&.push(true) unless @session.reading?
        end
      end
    end
  end
end
