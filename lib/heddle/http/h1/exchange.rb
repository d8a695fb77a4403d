# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # An exchange over HTTP/1.1 or 1.0. The connection has one exchange at a time, so the application may take over
      # the connection.
      class Exchange < HTTP::Exchange
        LAST_CHUNK = "0\r\n\r\n".b.freeze
        HINTS_LINE = "HTTP/1.1 103 Early Hints\r\n".b.freeze
        private_constant :LAST_CHUNK, :HINTS_LINE

        # @return [Boolean] whether the client understands interim responses (RFC 9110, section 15.2)
        def interim? = minor > 0

        # @return [Boolean] whether the connection can be taken over
        def hijack? = true

        # @return [Boolean] whether the client can no longer receive the response
        def gone? = closed?

        # -- sending: see HTTP::Response

        # @param status [Integer]
        # @param headers [Hash{String => String, Array<String>}]
        # @param length [Integer, nil] bytes of content; nil: unknown
        # @param protocol [String, nil] the protocol to upgrade to
        # @param until_close [Boolean] whether content of unknown length is sent unframed and ends with the connection
        # @return [ResponseHead] the head, not yet sent
        # @raise [InvalidResponseError]
        def make_head(status, headers, length: nil, protocol: nil, until_close: false)
          engine.writer.head(self, status, headers, length, persistent?, protocol, until_close)
        end

        # @param head [ResponseHead]
        # @return [void]
        # @raise [ClientGoneError]
        def send_head(head)
          write(head.bytes)
          @chunked = head.framing == :chunked
          self.chunking = true if @chunked && !head.precoded
        end

        # Queues the head, as {#send_head} does: the loop sends it in its next tick, with the connection's other output.
        # @see #send_head
        def hold_head(head) = send_head(head)

        # @return [void]
        def release_head = nil

        # @param head [ResponseHead] a head passed to {#hold_head}
        # @return [Boolean] false: the head was already sent
        def withdraw_head(head)
          return false unless withdraw(head.bytes)

          @chunked = self.chunking = false
          true
        end

        # Sends the head and the whole content in one write. The head announces the content's length.
        # @param head [ResponseHead]
        # @param chunks [Array<String>]
        # @return [void]
        # @raise [ClientGoneError]
        def send_whole(head, chunks) = write([head.bytes, *chunks])

        # @param data [String] not empty
        # @return [void]
        # @raise [ClientGoneError]
        def send_content(data) = @chunked ? write_chunk(data) : write(data)

        # Ends the content and the exchange. The loop sends output that is still queued.
        # @param head [ResponseHead]
        # @return [void]
        # @raise [ClientGoneError]
        def send_end(head)
          write(LAST_CHUNK) if @chunked
          finish(head.keep_alive, head.status)
        end

        # Joins the hints of several calls to one 103 response, because clients and proxies must parse each 103 response
        # separately. The loop sends the 103 response when this fiber waits or has used up its time slice. The hints of
        # later calls are sent in another 103 response.
        # @param headers [Hash{String => String, Array<String>}]
        # @return [void]
        # @raise [InvalidResponseError]
        # @raise [ClientGoneError]
        def send_early_hints(headers)
          bytes = engine.writer.early_hints(headers)
          return if @hints && amend_hints(bytes)

          write(bytes)
          @hints = bytes
        end

        # @return [void]
        def send_continue = write(ResponseWriter::CONTINUE)

        # Sends a part of a file.
        # @param file [File]
        # @param offset [Integer] bytes
        # @param length [Integer] bytes
        # @return [void]
        # @raise [ClientGoneError]
        # @raise [EOFError] when the file has fewer bytes
        def send_file(file, offset, length)
          drain
          send_file_part(file, offset, length, engine.configuration.write_timeout)
        rescue EOFError
          raise
        rescue SystemCallError, IOError => e
          send_failed(e)
        end

        # -- taking the connection over

        # Takes the connection over: the server no longer uses it. The method is named `call` because this object is
        # Rack's `rack.hijack`.
        # @return [Socket] the socket, with the bytes that were read ahead pushed back; each call returns the same
        #   socket. The env has it, too, as `rack.hijack_io`, because libraries for Rack 2 read it there
        # @raise [IOError] if the response has begun
        # @raise [ClientGoneError]
        def call
          return @socket if hijacked?
          raise IOError, "the response has begun: call rack.hijack before it begins" if started?

          @socket = detach.tap { |socket| env["rack.hijack_io"] = socket if env }
        end

        # @return [Boolean]
        def hijacked? = defined?(@socket) ? true : false

        # Takes the connection over, also after the head was sent. From then on, the connection does not count against
        # the server's limits of connections. Detached connections are counted separately: each address may have as many
        # of them as the limit per address allows, so that one address can't use up the descriptors. At that limit, this
        # method closes the connection and raises {ClientGoneError}.
        # @return [Socket] the socket, with the bytes that were read ahead pushed back
        # @raise [ClientGoneError]
        def detach
          engine, address = self.engine, address_number
          if address > 0 && exhausts_share?(engine.count_detached(address))
            close
            raise ClientGoneError, "the client's address has too many hijacked connections"
          end
          drain
          detach_socket.tap do |socket|
            @detached = true
            engine.detach(socket, address)
          end
        end

        # @see HTTP::Exchange#detached?
        def detached? = defined?(@detached) ? true : false

        private

        # @return [Boolean] whether the hints were added to the unsent 103 response
        def amend_hints(bytes)
          joined = @hints.byteslice(0, @hints.bytesize - 2) << bytes.byteslice(HINTS_LINE.bytesize..)
          return false unless rewrite(@hints, joined)

          @hints = joined
          true
        end

        def send_failed(error)
          case error
          when IO::TimeoutError
            message = "the client read nothing of the response for #{engine.configuration.write_timeout} s"
          when SystemCallError
            message = "the client left before it had the response (#{error.class})"
          else
            # The connection is open, so this is a mistake of the application, such as two fibers that write at the same
            # time.
            raise error unless closed?

            message = "the connection was closed before the client had the response"
          end
          close
          raise ClientGoneError, message
        end
      end
    end
  end
end
