# frozen_string_literal: true

module Heddle
  module Rack
    # Responds to requests with an application that runs in a thread (mode thread). The thread uses an {ExchangeProxy}.
    class ThreadHandler < Handler
      NONE = [].freeze
      private_constant :NONE

      # @param runners [Server::RunnerThreads]
      # @see Handler#initialize
      def initialize(app, env_builder, log, runners, **)
        @runners = runners
        super(app, env_builder, log, **)
      end

      # Called in a fiber of the loop.
      # @param exchange [HTTP::Exchange]
      # @return [void]
      def call(exchange)
        env = Rack.env(@env_builder, exchange, [])
        proxy = ExchangeProxy.new(exchange) { |one| serve(one, env) }
        env["rack.hijack"] = proxy
        add_input(env, exchange, proxy) if exchange.body?
        add_hints(env, exchange, proxy) if @early_hints
        @runners << proxy
        proxy.follow
      rescue Exception => e
        proxy&.cancel(e) if e.is_a?(Cancelled)
        fail_with(exchange, e)
      ensure
        report_violation(exchange) if exchange.response?
      end

      private

      def socket_callbacks(log) = ThreadSocketCallbacks.new(log, @context, @runners)

      # Serves the request, in the thread. At the end, passes a block to the loop if something remains to be done there.
      def serve(proxy, env)
        input = env["rack.input"]
        finished = env["rack.response_finished"]
        answer = failure = last = nil
        begin
          answer = @app.call(env)
          Native::Processes.end_child(nil) unless Process.pid == @process
          last = upgrade_for(proxy, answer, env) || (last_for(proxy, answer) if finished.empty?)
          respond(proxy, input, answer, finished, env) unless last
        rescue Exception => e
          Native::Processes.end_child(e) unless Process.pid == @process
          failure = e
          withdraw_head(proxy)
        end
        fail_with(proxy, failure) if failure
      rescue Exception => e
        # {#fail_with} could not respond, or has raised `failure` again.
        last = -> { raise e } # raised in the loop
      ensure
        close_body(proxy, answer) if answer
        notify(proxy, finished, env, answer, failure) unless finished.nil? || finished.empty?
        proxy.release(&last)
      end

      # Must be called before {#fail_with}, which first writes to the log. Meanwhile the loop could send the held head.
      def withdraw_head(proxy)
        proxy.response.withdraw if proxy.started?
      rescue ExchangeProxy::EndedError
        nil
      end

      # @return [Proc, nil] a block for the loop, which opens the WebSocket or event stream; nil: the application has
      #   not requested an upgrade
      def upgrade_for(proxy, answer, env)
        handler = env["rack.upgrade"] if proxy.exchange.upgradable?
        return if !handler || proxy.hijacked? || !answer.is_a?(Array) || answer.size != 3

        status, headers, = answer
        return if !headers.is_a?(Hash) || status.to_i >= 300

        lambda do
          check_open(proxy.exchange)
          @upgrade.call(proxy.exchange, env, handler, headers)
        end
      end

      # @return [Proc, nil] a block for the loop, which sends the whole response, while the thread already serves
      #   another request; nil: the thread must send this response itself
      def last_for(proxy, answer)
        return if proxy.hijacked? || !answer.is_a?(Array) || answer.size != 3

        status, headers, body = answer
        return if !headers.is_a?(Hash) || headers.key?("rack.hijack") || headers.key?("rack.protocol")
        return array_last(proxy.exchange, status, headers, body.to_ary) if body.respond_to?(:to_ary)

        file = Responder.file_of(body, headers)
        file_last(proxy, status, headers, file) if file
      end

      # The strings are copied, because the application may change them for another response.
      def array_last(exchange, status, headers, chunks)
        answer = [status, headers.dup, chunks.map { |chunk| chunk.frozen? ? chunk : chunk.dup }]
        -> { Rack.respond(exchange, answer, false) || respond(exchange, NoInput::INSTANCE, answer, NONE, {}) }
      end

      def file_last(proxy, status, headers, file)
        proxy.file = file
        lambda do
          check_open(proxy.exchange)
          @runners.freed { Responder.new(proxy.exchange, NoInput::INSTANCE).send_file(file, status, headers) }
        end
      end

      def responder(exchange, input, wait)
        exchange.is_a?(ExchangeProxy) ? ThreadResponder.new(exchange, input, wait:) : super
      end
    end
  end
end
