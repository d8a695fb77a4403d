# frozen_string_literal: true

module Heddle
  module Rack
    # Stands for the response in a thread that serves a request. The loop makes the calls ({ExchangeProxy}).
    class ResponseProxy
      # @param proxy [ExchangeProxy]
      # @param response [HTTP::Response]
      def initialize(proxy, response)
        @proxy = proxy
        @response = response
      end

      # @see HTTP::Response
      def start(status, headers, **options) = @proxy.ask { @response.start(status, headers, **options) }

      def flush = @proxy.enqueue { @response.flush }

      # In a fiber, a held head is sent in the loop's next tick, because the fiber then waits. A thread may still be
      # computing the body in that tick. So a head that a thread holds is sent only after HEAD_DELAY ({ExchangeProxy}).
      def hold = @proxy.flush_head_later

      def write(data)
        data = data.dup unless data.frozen? # the thread does not wait, and may change the string
        @proxy.enqueue(data.bytesize) { @response.write(data) }
      end

      def write_file(file, length) = @proxy.ask { @response.write_file(file, length) }

      def finish = @proxy.ask { @response.finish }

      def abort = @proxy.ask { @response.abort }

      # Does not wait for the loop, so that the loop can send several hints in one response 103.
      def early_hints(headers)
        headers = headers.to_h { |name, value| [name, value.dup] }
        @proxy.enqueue { @response.early_hints(headers) }
      end

      def withdraw = @proxy.withdraw_head

      def bodiless? = @response.bodiless?

      def raw? = @response.raw?

      def finished? = @response.finished?
    end
  end
end
