# frozen_string_literal: true

module Heddle
  module Rack
    # Sends the response that an application has returned. How it is sent depends on the kind of the body (the Rack
    # specification, "The Body").
    class Responder
      class << self
        # @param body [#each, #call]
        # @param headers [Hash{String => Object}]
        # @return [File, nil] the opened file of the body; nil: the body can't be sent as a file
        def file_of(body, headers)
          return unless body.respond_to?(:to_path) && (path = body.to_path)

          file = File.open(path, "rb")
          stat = file.stat
          return file if stat.file? && fits?(headers, stat.size)

          file.close
        rescue Errno::ENOENT, Errno::EACCES
          nil # the body is sent by its `each` or `call`
        end

        private

        # If Content-Length is not the file's size, the body is only a part of the file.
        def fits?(headers, size)
          headers.none? do |name, value|
            name = name.downcase
            name == "transfer-encoding" || (name == "content-length" && value.to_s != size.to_s)
          end
        end
      end

      # @param exchange [HTTP::Exchange]
      # @param input [Input, StreamedInput, NoInput] the request's body. The env's `rack.input` can't be used, because
      #   the application may have replaced it.
      # @param wait [Boolean] whether to return only after the kernel has accepted the whole response
      def initialize(exchange, input, wait: false)
        @exchange = exchange
        @response = exchange.response
        @input = input
        @wait = wait
      end

      # @param status [Integer]
      # @param headers [Hash{String => Object}]
      # @param body [#each, #call]
      # @return [void]
      def respond(status, headers, body)
        hijack = headers["rack.hijack"]
        return partial_hijack(hijack, status, headers) if hijack

        return events(body.event_stream, status, headers) if body.respond_to?(:event_stream)

        protocol = headers["rack.protocol"] if status.to_i < 300
        return stream(body, status, headers, protocol) if protocol
        return array(body.to_ary, status, headers) if body.respond_to?(:to_ary)

        file(body, status, headers) || other(body, status, headers)
      end

      # @param file [File] the content
      # @return [void]
      def send_file(file, status, headers)
        size = file.size
        @response.start(status, headers, length: size)
        @response.write_file(file, size) unless @response.bodiless?
        finish
      end

      private

      def open_stream(ended = nil) = Stream.new(input, @exchange, ended)

      def finish
        @exchange.drain if @wait
        @response.finish
      end

      def other(body, status, headers)
        return each(body, status, headers) if body.respond_to?(:each)
        return stream(body, status, headers, nil) if body.respond_to?(:call)

        raise HTTP::InvalidResponseError, "the body, #{body.class}, must respond to each or to call"
      end

      def array(chunks, status, headers)
        return if Rack.respond(@exchange, [status, headers, chunks], @wait)

        size = chunks.sum { |chunk| size_of(chunk) }
        @response.start(status, headers, length: @exchange.head? && size.zero? ? nil : size)
        @response.write_all(chunks, size) unless @response.bodiless?
        finish
      end

      def each(body, status, headers)
        @response.start(status, headers)
        unless @response.bodiless?
          begin_content(headers)
          stream = open_stream # for its lock: `each` may call the block in several threads and fibers
          body.each do |chunk|
            size_of(chunk)
            stream.write(chunk)
          end
        end
        finish
      end

      # An event stream's head is sent at once, because EventSource waits for it. Other heads are held until there is
      # content, so that a body that fails at once still gets the status 500.
      def begin_content(headers) = events?(headers) ? @response.flush : @response.hold

      def events?(headers) = (headers["content-type"] || headers["Content-Type"]).to_s.start_with?("text/event-stream")

      # @return [true, nil] nil: the body can't be sent as a file
      def file(body, status, headers)
        file = Responder.file_of(body, headers) or return
        send_file(file, status, headers)
        true
      ensure
        file&.close
      end

      # Sends an event stream. The connection sends the events without a fiber, if it can. Otherwise, for example if the
      # request's body was not read completely, this fiber sends them.
      def events(body, status, headers)
        @response.start(status, { **EventStream::FIELDS, **headers })
        return finish if @response.bodiless?

        @response.flush
        settings = body.connection_settings
        return if settings && @response.stream_events(settings)

        @exchange.cancel_on_disconnect(body) if body.respond_to?(:cancel)
        stream = open_stream
        body.serve(stream, every: EventStream::POLL_INTERVAL) { @exchange.gone? || @exchange.engine.draining? }
        stream.close
      end

      def stream(body, status, headers, protocol)
        unless body.respond_to?(:call)
          raise HTTP::InvalidResponseError, "rack.protocol needs a body that responds to call"
        end

        @response.start(status, headers, protocol:)
        return finish if @response.bodiless?

        protocol ? @response.flush : begin_content(headers)
        call(body, headers)
      end

      # Calls the application's block. The block owns the stream, and other fibers and threads may write to it and close
      # it later, as with Puma and Falcon. This fiber waits until the stream is closed, because it decodes the rest of
      # the request's body, and writes HTTP/2 frames. When the server stops, this method closes an event stream, whose
      # client then connects again.
      def call(block, headers)
        ended = Thread::Queue.new # gets no entries; the stream closes it when the response has ended
        stream = open_stream(ended)
        block.call(stream)
        until ended.pop(timeout: EventStream::POLL_INTERVAL) || ended.closed?
          return stream.close if @exchange.closed? || (events?(headers) && @exchange.engine.draining?)
        end
      end

      # Calls the application's callback (`rack.hijack` in the headers). The callback owns the stream. For HEAD, the
      # callback is not called, as no body would be sent.
      def partial_hijack(hijack, status, headers)
        if @exchange.head?
          @response.start(status, headers)
          return finish
        end

        unless @exchange.received? && @exchange.hijack?
          @response.start(status, headers)
          @response.flush
          return call(hijack, headers)
        end

        @response.start(status, headers, until_close: true)
        @response.flush
        pass_socket(hijack)
      end

      # If the callback raises, it can't close the socket any more. The client would wait for the end of the stream, so
      # the socket is closed here.
      def pass_socket(hijack)
        socket = @exchange.detach
        hijack.call(socket)
        passed = true
      ensure
        socket&.close unless passed
      end

      # After an upgrade over HTTP/1.1, the input is all bytes that follow on the connection. On an HTTP/2 stream, it is
      # still the request's body.
      def input
        @response.raw? && @exchange.hijack? ? StreamedInput.new(HTTP::RequestBody.new(@exchange, raw: true)) : @input
      end

      def size_of(chunk)
        return chunk.bytesize if chunk.is_a?(String)

        raise HTTP::InvalidResponseError, "the body yielded a #{chunk.class}, but must yield only Strings"
      end
    end
  end
end
