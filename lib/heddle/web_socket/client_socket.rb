# frozen_string_literal: true

require "digest/sha1"
require "heddle/http/client"
require "heddle/web_socket/messages"

module Heddle
  module WebSocket
    # The base of the errors of client WebSockets. A failed connection attempt raises an HTTP::Client::Error instead.
    class Error < OwnError; end

    # Raised when the server does not accept the WebSocket.
    class HandshakeError < Error
      # @return [Integer, nil] the status of the response; nil: there was no valid response
      attr_reader :status

      def initialize(message, status = nil)
        @status = status
        super(message)
      end
    end

    # A client's WebSocket, opened with {WebSocket.connect}. Its methods wait, like those of an IO. Only one fiber or
    # thread may read at a time; any number may write.
    class ClientSocket
      include MonotonicClock
      include Messages

      GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
      # A message may have this many fragments, or one fragment per BYTES_PER_FRAGMENT bytes of the message limit if
      # that is more.
      FRAGMENTS = 1_000
      BYTES_PER_FRAGMENT = 1_024
      # Maximum bytes of one read.
      PIECE = 65_536
      TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
      # Fields that only the handshake may set.
      RESERVED = /\A(?:host|connection|upgrade|content-length|transfer-encoding|sec-websocket-.*)\z/i
      REASON_LIMIT = 123
      private_constant :GUID, :FRAGMENTS, :BYTES_PER_FRAGMENT, :PIECE, :TEXT, :BINARY, :CLOSE, :PING, :PONG, :RESERVED,
                       :REASON_LIMIT

      # @return [String, nil] the subprotocol that the server has selected
      attr_reader :protocol
      # @return [Integer, nil] the close code; 1006 if the socket ended without a close frame; nil while it is open
      attr_reader :close_code
      # @return [String, nil] the reason in the server's close frame, or what was wrong with the server's frames
      attr_reader :close_reason

      # @api private
      # @see WebSocket.connect
      def initialize(url, protocols:, headers:, timeout:, write_timeout:, ping:, message_limit:, deny_private:, tls:)
        @uri = parse(url)
        @ping = Arguments.limit("ping:", ping)
        @write_timeout = Arguments.limit("write_timeout:", write_timeout)
        @writing = Thread::Mutex.new
        Arguments.count("message_limit:", message_limit, 1)
        @codec = HTTP::WebSocket::Codec.new(message_limit, [FRAGMENTS, message_limit / BYTES_PER_FRAGMENT].max)
        @messages = []
        @closing = @pinged = @reading = false
        limits = HTTP::Client::TimeLimits.from({ connect: timeout, tls: timeout, first_byte: timeout, read: timeout })
        @socket = dial(limits, deny_private, tls)
        perform_handshake(limits, protocols, headers)
        @heard = now
      ensure
        @socket&.close unless @heard
      end

      # Waits for a message.
      # @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
      # @return [String, nil] the message, in UTF-8 or BINARY; nil: the socket is closed
      # @raise [IO::TimeoutError]
      def read(timeout: nil)
        deadline = timeout && (now + Arguments.wait("timeout:", timeout))
        until (message = @messages.shift) || @close_code
          receive(deadline)
        end
        message
      end

      # Sends a message, binary if its encoding is BINARY.
      # @param data [String]
      # @return [Boolean] false: the socket is closed, or the connection has failed
      # @raise [ArgumentError] for text that is not valid UTF-8
      # @raise [IO::TimeoutError] when the server reads nothing for `write_timeout` seconds; the socket is closed then
      def write(data)
        data = Arguments.string("the message", data)
        return send_frame(BINARY, data) if data.encoding == Encoding::BINARY

        data = data.encode(Encoding::UTF_8)
        raise ArgumentError, "the message is not valid UTF-8: pass other bytes as a binary String (String#b)" unless
          data.valid_encoding?

        send_frame(TEXT, data)
      end

      # Sends a close frame. Then waits for the server's close frame, at most `timeout` seconds, unless another fiber
      # reads. Idempotent.
      # @return [void]
      # @raise [ArgumentError] for a code that RFC 6455 (section 7.4) does not allow, or a reason above 123 bytes
      def close(code = 1000, reason = "", timeout: 5)
        unless HTTP::WebSocket::Codec.code?(code) && reason.bytesize <= REASON_LIMIT
          raise ArgumentError, "the close code must be from 1000 to 1003, 1007 to 1014 or 3000 to 4999, and the " \
                               "reason may have at most #{REASON_LIMIT} bytes"
        end
        return if @close_code

        begin_close(code, reason)
        return if @reading # the reading fiber receives the server's close frame

        deadline = now + timeout
        receive(deadline) until @close_code
      rescue IO::TimeoutError
        nil
      ensure
        finish(1006) if deadline
      end

      # @return [Boolean]
      def open? = !@closing && @close_code.nil?

      private

      def parse(url)
        uri = URI(url)
        return uri if %w[ws wss].include?(uri.scheme) && uri.host

        raise ArgumentError, "#{url.inspect} is not the URL of a WebSocket, which has a host and begins with ws:// " \
                             "or wss://"
      end

      def dial(limits, deny_private, tls)
        tls &&= Net::TLS::ClientContext.for({ protocols: %w[http/1.1], **Arguments.fields("tls:", tls) })
        settings = HTTP::Client::ConnectionSettings.new(tls:, proxy: nil, deny_private:, max_connections: 1,
                                                        idle_timeout: nil, http2: false)
        scheme = @uri.scheme == "wss" ? "https" : "http"
        HTTP::Client::Dialer.new(scheme, @uri.hostname, @uri.port, settings, nil).call(limits, nil)
      end

      def perform_handshake(limits, protocols, headers)
        key = [Random.urandom(16)].pack("m0")
        @socket.write(request(key, protocols, headers), timeout: limits.write)
        head = HTTP::Client::Connection.new(@socket).reader.read_head("GET", limits.first_byte, limits.read)
        raise HandshakeError, "#{@uri.host}: the server closed the connection without a response" unless head
        raise HandshakeError, "#{@uri.host}: #{head.reason}" if head.is_a?(HTTP::Rejection)

        check(head, key, protocols)
      end

      def request(key, protocols, headers)
        fields = { "upgrade" => "websocket", "connection" => "Upgrade", "sec-websocket-key" => key,
                   "sec-websocket-version" => "13" }
        fields["sec-websocket-protocol"] = [*protocols].join(", ") if [*protocols].any?
        headers = Arguments.fields("headers:", headers || {}).to_h { |name, value| own_field(name, value) }
        fields = { "host" => host }.merge(fields, headers)
        target = @uri.request_uri
        "GET #{target} HTTP/1.1\r\n#{HTTP::Client::Fields.lines(HTTP::Client::Fields.list(fields))}\r\n"
      end

      def own_field(name, value)
        raise ArgumentError, "headers: leave out #{name}, because the handshake sets it" if RESERVED.match?(name.to_s)

        [name.to_s.downcase, value]
      end

      def host = @uri.port == @uri.default_port ? @uri.host : "#{@uri.host}:#{@uri.port}"

      # RFC 6455, section 4.1.
      def check(head, key, protocols)
        raise HandshakeError.new("#{@uri.host} responded with #{head.status} #{head.reason}", head.status) unless
          head.status == 101

        fields = head.fields.each_slice(2).group_by(&:first).transform_values { |all| all.map(&:last).join(", ") }
        accept = ::Digest::SHA1.base64digest(key + GUID)
        @protocol = fields["sec-websocket-protocol"]
        violation = if !fields["upgrade"].to_s.casecmp?("websocket") then "it upgrades to another protocol"
                    elsif fields["connection"].to_s.split(",").none? { |name| name.strip.casecmp?("upgrade") }
                      "its field Connection does not name the upgrade"
                    elsif fields["sec-websocket-accept"] != accept then "its field Sec-WebSocket-Accept is wrong"
                    elsif fields["sec-websocket-extensions"] then "it selects an extension that was not offered"
                    elsif @protocol && ![*protocols].include?(@protocol)
                      "it selects the protocol #{@protocol}, which was not offered"
                    end
        raise HandshakeError.new("#{@uri.host}: the response is not valid: #{violation}", 101) if violation
      end

      # Reads once, and responds to pings and close frames. Sends a ping after `ping` seconds of silence.
      def receive(deadline)
        time = [deadline, @ping && (@heard + @ping)].compact.min
        bytes = read_bytes(time && (time - now).clamp(0.001..))
        return finish(1006) unless bytes

        @heard = now
        @pinged = false
        @codec.read(bytes).each { |event| handle(*event) }
        # While a server sends without a pause, other fibers must run, and the deadline must still apply.
        sleep(0)
        raise IO::TimeoutError, "no message came in time" if deadline && now >= deadline && @messages.empty?
      rescue IO::TimeoutError
        ping_or_finish if @ping && now >= @heard + @ping
        raise if @close_code.nil? && deadline && now >= deadline
      rescue SystemCallError, IOError
        finish(1006)
      end

      # Sends a ping after the first interval of silence. Closes the socket after the second.
      def ping_or_finish
        return finish(1006) if @pinged

        @heard = now
        @pinged = true
        send_frame(PING, "")
      end

      def read_bytes(timeout)
        @reading = true
        @socket.readpartial(PIECE, timeout:)
      ensure
        @reading = false
      end

      def handle(kind, data, reason = nil)
        case kind
        when :message then @messages << data unless @closing
        when :ping then send_frame(PONG, data)
        when :close
          begin_close(data == 1005 ? nil : data, "")
          finish(data, reason)
        when :failure
          begin_close(data, reason)
          finish(data, reason)
        end
      end

      def begin_close(code, reason)
        return if @closing

        send_frame(CLOSE, code ? [code].pack("n") << reason.b : "")
        @closing = true
      end

      def finish(code, reason = nil)
        @close_code ||= code
        @close_reason ||= reason unless reason.to_s.empty?
        @closing = true
        @socket.close
      end

      # @return [Boolean]
      def send_frame(opcode, data)
        frame = HTTP::WebSocket::Codec.frame(opcode, data, Random.urandom(4))
        @writing.synchronize do
          return false unless (sending = open?)

          @socket.write(frame, timeout: @write_timeout)
          sending = false
          true
        rescue IO::TimeoutError
          raise
        rescue SystemCallError, IOError
          sending = false
        ensure
          finish(1006) if sending # the server may have received a part of the frame, so no other frame may follow
        end
      end
    end
  end
end
