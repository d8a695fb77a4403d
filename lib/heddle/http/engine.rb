# frozen_string_literal: true

require "heddle/net/sockets"

module Heddle
  module HTTP
    # The HTTP service of a loop. Connections choose their version, and read heads and bodies without a fiber. Then
    # {Net::Sockets} calls its block with an {Exchange}. The counters cover all versions together.
    class Engine
      # Bytes of a request's target in an event.
      TARGET = 200
      private_constant :TARGET

      # @return [Limits]
      attr_reader :configuration
      # @return [H1::ResponseWriter]
      attr_reader :writer
      # @return [H2::ResponseWriter]
      attr_reader :field_writer

      # @param configuration [Limits]
      # @param on_rejection [#to_proc, nil] called for input that got an error response and never became a request, with
      #   the client's address, the status, a reason, and whether the queue had no room for the request ({Admission}
      #   counts those). It runs in the loop and must not wait.
      # @param proxies [Net::Networks, nil] whose statement of a client's address the log trusts
      # @param body_folder [String] folder for bodies larger than `body_buffer`, in files without a name
      # @param stream_bodies [Boolean, Array<String>] requests whose block may be called before their body is complete:
      #   all, none, or those whose path is one of these or below one. This happens if the body is larger than
      #   `body_buffer`, is slow and of unknown length, or waits for `100 Continue`
      # @param health_paths [Array<String>] the paths of health checks, whose requests admission never delays or rejects
      # @param on_event [#call, nil] called with the name of an event and its fields
      # @param http2 [Symbol] where clients may speak HTTP/2: :auto (everywhere), :tls (over TLS alone) or :off
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

      # An application has taken this connection over. If it loses the reference, the next garbage collection closes the
      # connection.
      # @param socket [BasicSocket]
      # @return [void]
      def detach(socket) = @detached[socket] = true

      # Called when an application calls rack.hijack for a request without a connection of its own. Logged once.
      # @param exchange [Exchange]
      # @return [void]
      def report_hijack(exchange)
        return if @hijack_reported

        @hijack_reported = true
        @on_event&.call(:hijack_over_http2, method: exchange.method, target: exchange.target.byteslice(0, TARGET))
      end

      # @return [Boolean] whether an application has a connection that it has taken over
      def detached? = @detached.keys.any? { |socket| !socket.closed? }
    end
  end
end
