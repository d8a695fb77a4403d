# frozen_string_literal: true

module Heddle
  module Rack
    # The answer to a request that a thread serves.
    class LentResponse
      # @param lent [LentExchange]
      # @param response [HTTP::Response]
      def initialize(lent, response)
        @lent = lent
        @response = response
      end

      # @see HTTP::Response
      def start(status, headers, **options) = @lent.ask { @response.start(status, headers, **options) }

      def flush = @lent.tell { @response.flush }

      def write(data)
        data = data.dup unless data.frozen? # the thread goes on, and may change it
        @lent.tell(data.bytesize) { @response.write(data) }
      end

      def write_file(file, length) = @lent.ask { @response.write_file(file, length) }

      def finish = @lent.ask { @response.finish }

      def abort = @lent.ask { @response.abort }

      # Not asked for: the loop sends together what the thread says until the loop runs.
      def early_hints(headers)
        headers = headers.to_h { |name, value| [name, value.dup] }
        @lent.tell { @response.early_hints(headers) }
      end

      def unsent? = @lent.ask { @response.unsent? }

      def bodiless? = @response.bodiless?

      def raw? = @response.raw?

      def finished? = @response.finished?
    end
  end
end
