# frozen_string_literal: true

module Heddle
  module HTTP
    module H2
      # The head of a response that the HTTP client has received over HTTP/2. All strings are binary.
      class ReceivedResponse
        # @return [Integer]
        attr_reader :status
        # @return [Array<String>] names (in lower case) and values, alternating, in the order of the response
        attr_reader :fields

        # @param ended [Boolean] whether nothing follows the head
        def initialize(status, fields, ended)
          @status = status
          @fields = fields
          @ended = ended
        end

        # @return [String] always empty, because HTTP/2 has no reason phrase
        def reason = ""

        # @return [Boolean] whether content may follow
        def body? = !@ended

        # @return [Boolean] whether the content ends with the connection
        def until_close? = false
      end
    end
  end
end
