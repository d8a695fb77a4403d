# frozen_string_literal: true

require "heddle/net/sockets"

module Heddle
  module HTTP
    # The HTTP service of a loop. It reads heads and bodies of requests of all HTTP versions without a fiber. Then
    # {Net::Sockets} calls the block that serves requests with an {Exchange}. The engine's counters cover all HTTP
    # versions together.
    class Engine
      # Maximum bytes of a request's target in an event.
      TARGET = 200
      private_constant :TARGET

      # @return [Limits]
      attr_reader :configuration
      # @return [H1::ResponseWriter] writes the heads of HTTP/1.1 responses
      attr_reader :writer
      # @return [H2::ResponseWriter] writes the heads of HTTP/2 responses
      attr_reader :field_writer

      # @param configuration [Limits]
      # @param on_rejection [#to_proc, nil] called when input is rejected before it becomes a request. Its arguments are
      #   the client's address, the status, a reason, and whether the queue was full ({Admission} counts these
      #   requests). It runs in the loop and must not wait.
      # @param proxies [Net::Networks, nil] trusted proxies: the log takes the client's address from their header
      #   fields, and the time account takes the time when the proxy received the request
      # @param body_folder [String] folder for the unnamed files with bodies larger than `body_buffer`
      # @param stream_bodies [Boolean, Array<String>] the requests for which the block may be called before the body is
      #   complete: all, none, or those with one of these paths or a path below one. The block is called early if the
      #   body is larger than `body_buffer`, or if the client waits for `100 Continue`. If the length is unknown, it is
      #   also called early: over HTTP/2 always, over HTTP/1.1 when the client pauses
      # @param health_paths [Array<String>] the paths of health checks. Admission delays or rejects their requests only
      #   if too many of them come at once, or after the server has begun to stop
      # @param on_event [#call, nil] called with the name of an event and its fields
      # @param http2 [Symbol] where clients may speak HTTP/2: :auto (everywhere), :tls (only over TLS) or :off
      def initialize(configuration = Limits.new, on_rejection: nil, on_event: nil, proxies: nil,
                     body_folder: "/tmp", stream_bodies: false, health_paths: [], http2: :auto)
        @configuration = configuration
        @writer = H1::ResponseWriter.new
        @field_writer = H2::ResponseWriter.new
        @detached = ObjectSpace::WeakMap.new
        @on_event = on_event
        set_up(configuration, on_rejection&.to_proc, proxies, body_folder, stream_bodies, health_paths,
               http2)
      end

      # Registers a connection that the application has taken over. The reference is weak: if the application drops its
      # own, garbage collection closes the socket.
      # @param socket [BasicSocket]
      # @param address [Integer] number of the client's address
      # @return [void]
      def detach(socket, address) = @detached[socket] = address

      # @param address [Integer] number of a client's address
      # @return [Integer] how many connections of this address the application has taken over and still uses
      def count_detached(address) = @detached.count { |socket, other| other == address && !socket.closed? }

      # Called when an application calls rack.hijack for an HTTP/2 request, which has no connection of its own. Reports
      # the first such call.
      # @param exchange [Exchange]
      # @return [void]
      def report_hijack(exchange)
        return if @hijack_reported

        @hijack_reported = true
        @on_event&.call(:hijack_over_http2, method: exchange.method, target: exchange.target.byteslice(0, TARGET))
      end

      # @return [Boolean] whether an application still uses a connection that it has taken over
      def detached? = @detached.keys.any? { |socket| !socket.closed? }
    end
  end
end
