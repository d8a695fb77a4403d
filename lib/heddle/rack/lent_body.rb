# frozen_string_literal: true

module Heddle
  module Rack
    # The body of a request that a thread serves. Made in the loop's fiber; one that is complete is read there, and the
    # thread has it without asking.
    class LentBody
      # @param lent [LentExchange]
      # @param body [HTTP::H1::RequestBody]
      # @param complete [Boolean]
      def initialize(lent, body, complete:)
        @lent = lent
        @body = body
        @complete = complete
        @ahead = complete ? body.read : nil
      end

      # @return [String, nil] the next bytes of the body, never empty; nil at its end
      # @raise (see HTTP::H1::RequestBody#read)
      def read
        return @lent.ask(aside: true) { @body.read } unless @complete

        ahead = @ahead
        @ahead = nil
        ahead
      end
    end
  end
end
