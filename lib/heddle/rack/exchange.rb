# frozen_string_literal: true

require "heddle"

module Heddle
  module Rack
    # One request and its answer: calls the application, sends what it returns, contains what it does wrong.
    class Exchange
      # @return [HTTP::H1::RequestHead]
      attr_reader :head
      # @return [String]
      attr_reader :remote_address
      # @return [HTTP::H1::Response]
      attr_reader :response

      # @param connection [HTTP::H1::ServerConnection]
      # @param head [HTTP::H1::RequestHead]
      # @param body [HTTP::H1::RequestBody, nil]
      # @param log [#failure, #complaint, #client_gone] told about what goes wrong
      def initialize(connection, head, body, log)
        @connection = connection
        @head = head
        @body = body
        @log = log
        @remote_address = connection.connection.remote_address
        @response = HTTP::H1::Response.new(connection, head, body)
        @hijack = nil
        @reusable = false
        @refused = nil
      end

      # @param app [#call]
      # @param env_builder [EnvBuilder]
      # @return [Boolean] whether the connection can serve another request
      def run(app, env_builder)
        env = environment(env_builder)
        finished = env["rack.response_finished"]
        failure = answer = nil
        begin
          in_scope do
            answer = check(app.call(env))
            respond(*answer) unless hijacked?
          end
        rescue Exception => e
          failure = e
          fail_with(e)
        ensure
          close_body(answer)
          notify(finished, env, answer, failure)
        end
        @log.complaint(self, @response.complaint) if @response.complaint
        @reusable
      end

      # @return [Integer, nil] the status that was sent; nil when the application took the connection over
      def status = @refused || @response.status

      # @return [Boolean] whether the client got an error of the server's in place of the application's answer
      def refused? = !@refused.nil?

      # @return [Boolean] whether the application took the connection over
      def hijacked? = !@hijack.nil? && @hijack.hijacked?

      private

      # A task that the application starts belongs to its request: it ends before the exchange does, and when it fails,
      # it is the request that fails and not the server.
      def in_scope(&)
        Fiber.current_scheduler.is_a?(Scheduler) ? Heddle.scope(&) : yield
      end

      def environment(env_builder)
        env = env_builder.build(@head, @connection.connection)
        @input = @body ? Input.new(@body) : NoInput::INSTANCE
        @hijack = FullHijack.new(@connection, @response)
        env["rack.input"] = @input
        env["rack.hijack"] = @hijack
        env["rack.response_finished"] = []
        env["rack.early_hints"] = EarlyHints.new(@response) if @head.minor == 1
        env
      end

      def check(answer)
        return answer if answer.is_a?(Array) && answer.size == 3
        # What comes after a hijack is ignored.
        return answer if hijacked?

        raise HTTP::H1::InvalidResponse, "the application returned #{answer.class} in place of [status, headers, body]"
      end

      def respond(status, headers, body)
        unless headers.respond_to?(:each) && headers.respond_to?(:[])
          raise HTTP::H1::InvalidResponse, "the headers are a #{headers.class} in place of a Hash"
        end

        responder = Responder.new(@connection, @response, @input, @body, head_only: @head.head?)
        @reusable = responder.respond(status, headers, body)
      end

      def fail_with(error)
        @reusable = false
        case error
        when ClientGone
          @log.client_gone(self, error)
          # One that has only closed its own side still reads.
          refuse(HTTP::H1::Refusal.new(400, error.message))
        when HTTP::BadRequest then refuse(error.refusal)
        when StandardError, ScriptError, NoMemoryError, SystemStackError
          @log.failure(self, error)
          refuse(HTTP::H1::Refusal.new(500, "the application failed to answer; the server's log says why"))
        else
          # Cancelled, SystemExit, Interrupt: not the request's own failure, but the client is owed an end.
          @connection.close unless hijacked?
          raise error
        end
      end

      def refuse(refusal)
        return if hijacked?
        # A status can't be taken back; what can be is the promise that the content is complete.
        return @response.abort if @response.started? && !@response.unsent?

        @refused = refusal.status
        @connection.refuse(refusal, content: !@head.head?)
      end

      def close_body(answer)
        body = answer.is_a?(Array) ? answer[2] : nil
        body.close if body.respond_to?(:close)
      rescue StandardError, ScriptError => e
        @log.failure(self, e)
      end

      # In reverse order, as the specification says; one that fails does not keep the others from being called.
      def notify(callbacks, env, answer, failure)
        return if callbacks.empty?

        status, headers = answer if answer.is_a?(Array)
        callbacks.reverse_each do |callback|
          callback.call(env, status, headers, failure)
        rescue StandardError, ScriptError => e
          @log.failure(self, e)
        end
      end
    end
  end
end
