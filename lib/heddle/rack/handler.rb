# frozen_string_literal: true

require "heddle/runtime"

module Heddle
  module Rack
    # Calls the application for each request, sends the response that it returns, and handles its errors. A handler must
    # be created in the loop that it serves.
    class Handler
      # @param app [#call]
      # @param env_builder [EnvBuilder]
      # @param log [#failure, #violation, #client_gone] called for failures
      # @param early_hints [Symbol] the option with this name
      # @param allowed_origins [Array<String>, nil] the option with this name
      # @param websocket_deflate [Boolean] the option with this name
      def initialize(app, env_builder, log, early_hints: :off, allowed_origins: nil, websocket_deflate: false)
        @app = app
        @process = Process.pid
        @env_builder = env_builder
        @log = log
        @early_hints = early_hints == :off ? nil : early_hints
        @context = Concurrency::Context.of(Fiber.current_scheduler)
        callbacks = socket_callbacks(log)
        @upgrade = Upgrade.new(callbacks, allowed_origins, deflate: websocket_deflate)
        @socket_handoff = SocketHandoff.new(callbacks, log)
      end

      # @return [SocketHandoff] hands off WebSockets to other workers
      attr_reader :socket_handoff

      # @param exchange [HTTP::Exchange]
      # @return [void]
      def call(exchange)
        finished = []
        env = Rack.env(@env_builder, exchange, finished)
        input = add_input(env, exchange, exchange) if exchange.body?
        add_hints(env, exchange, exchange) if @early_hints
        plain = failure = answer = nil
        begin
          answer = @app.call(env)
          Native::Processes.end_child(nil) unless Process.pid == @process
          plain = Rack.respond(exchange, answer, !finished.empty?)
          respond(exchange, input || NoInput::INSTANCE, answer, finished, env) unless plain
        rescue Exception => e
          Native::Processes.end_child(e) unless Process.pid == @process
          failure = e
          exchange.response?&.withdraw # now, because the loop sends the head as soon as this fiber waits
        end
        # A task that the application has started belongs to this request, and must end before the exchange ends. If the
        # task fails, only this request fails.
        failure = @context.end_request_scope(failure) if @context.request_scopes?
        fail_with(exchange, failure) if failure
      ensure
        end_response(exchange, answer) unless plain
        notify(exchange, finished, env, answer, failure) unless finished.empty?
      end

      private

      def socket_callbacks(log) = SocketCallbacks.new(log, @context)

      # With `early_hints :on`, early hints are not sent through proxies. Some proxies (nginx before 1.29) treat the
      # response 103 as the final response.
      # @param sender [HTTP::Exchange, ExchangeProxy] sends the hints
      def add_hints(env, exchange, sender)
        return unless exchange.interim? && (@early_hints == :always || !exchange.proxied?)

        env["rack.early_hints"] = ->(headers) { sender.response.early_hints(headers) }
      end

      # A complete body without Content-Length gets CONTENT_LENGTH in the env; over HTTP/2, Rails would not read it
      # otherwise. A body without Content-Length that is still being received gets HTTP_TRANSFER_ENCODING, even over
      # HTTP/2, because nothing else in the env shows that there is a body. The bytes after CONNECT belong to a tunnel
      # and are not a body (RFC 9113, section 8.5). The application or a WebSocket reads them.
      # @param reader [HTTP::Exchange, ExchangeProxy] reads the body if it is streamed
      # @return [Input, StreamedInput]
      def add_input(env, exchange, reader)
        measured = env.key?("CONTENT_LENGTH")
        tunnel = env["REQUEST_METHOD"] == "CONNECT"
        if exchange.received? && !tunnel
          content = exchange.take_body || String.new
          unless measured
            env["CONTENT_LENGTH"] = content.bytesize.to_s
            env.delete("HTTP_TRANSFER_ENCODING")
          end
          return env["rack.input"] = Input.new(content)
        end
        env["HTTP_TRANSFER_ENCODING"] = "chunked" unless measured || tunnel
        env["rack.input"] = StreamedInput.new(reader.body)
      end

      # Closes the body, and logs a violation ({HTTP::Response#violation}). Not needed for a response that C has sent,
      # because such a response has no body to close.
      def end_response(exchange, answer)
        close_body(exchange, answer) if answer
        report_violation(exchange) if exchange.response?
      end

      def report_violation(exchange)
        violation = exchange.response.violation
        @log.violation(exchange, violation) if violation
      end

      def respond(exchange, input, answer, finished, env)
        # The application has taken the connection over, so what it returns is ignored.
        return if exchange.hijacked?

        check_open(exchange)
        unless answer.is_a?(Array) && answer.size == 3
          raise HTTP::InvalidResponseError,
                "the application returned #{answer.class} instead of [status, headers, body]"
        end

        status, headers, body = answer
        unless headers.respond_to?(:each) && headers.respond_to?(:[])
          raise HTTP::InvalidResponseError, "the application returned #{headers.class} as headers, which must be a Hash"
        end

        return if exchange.upgradable? && upgrade(exchange, env, status, headers)

        responder(exchange, input, !finished.empty?).respond(status, headers, body)
      end

      # @return [Boolean] whether the application has requested an upgrade; if so, the handshake or a rejection was sent
      def upgrade(exchange, env, status, headers)
        handler = env["rack.upgrade"]
        return false if !handler || status.to_i >= 300

        @upgrade.call(exchange, env, handler, headers)
        true
      end

      def check_open(exchange)
        raise ClientGoneError, "the connection was closed before the client had the response" if exchange.closed?
      end

      def responder(exchange, input, wait) = Responder.new(exchange, input, wait:)

      def fail_with(exchange, error)
        case error
        when ClientGoneError
          @log.client_gone(exchange, error)
          # The client may have closed only its sending side, and still read the response.
          reject(exchange, 400, error.message)
        when HTTP::BadRequestError then reject(exchange, error.rejection.status, error.rejection.reason)
        when ApplicationFailure
          @log.failure(exchange, error)
          reject(exchange, 500, "the application failed; see the server's log")
        when Cancelled
          reject(exchange, 503, "the request was cancelled")
          raise error
        else
          # This exception is not about the request. But the client would wait for the rest of the response, so the
          # exchange ends.
          exchange.close unless exchange.hijacked?
          raise error
        end
      end

      def reject(exchange, status, reason)
        return if exchange.hijacked?
        # A status that is already sent can't be changed, so the response is aborted.
        return exchange.response.abort if exchange.started? && !exchange.response.withdraw

        exchange.reject(status, reason)
      end

      def close_body(exchange, answer)
        body = answer.is_a?(Array) ? answer[2] : nil
        contain(exchange) { body.close } if body.respond_to?(:close)
      end

      # Calls the callbacks of `rack.response_finished` in reverse order, as the specification requires. All are called,
      # even if one fails. The callbacks of `rack.after_reply` are in the same list, and take no arguments. They come
      # last, in the order in which they were added.
      def notify(exchange, callbacks, env, answer, failure)
        status, headers = answer.is_a?(Array) ? answer : [500, {}]
        replies, finished = callbacks.partition { |callback| takes_nothing?(callback) }
        finished.reverse_each { |callback| contain(exchange) { callback.call(env, status, headers, failure) } }
        replies.each { |callback| contain(exchange) { callback.call } }
      end

      def takes_nothing?(callback)
        callback = callback.method(:call) if !callback.respond_to?(:arity) && callback.respond_to?(:call)
        callback.respond_to?(:arity) && callback.arity.zero?
      end

      def contain(exchange)
        yield
      rescue ApplicationFailure => e
        @log.failure(exchange, e)
      end
    end
  end
end
