# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # The head of a response that the HTTP client has received. {ResponseReader} makes it. All strings are binary.
      class ReceivedResponse
        # @return [Integer]
        attr_reader :status
        # @return [String] the reason phrase, a text for people: clients must ignore it
        attr_reader :reason
        # @return [Array<String>] names (in lower case) and values, alternating, in the order of the response
        attr_reader :fields
        # @return [Integer, nil] bytes of content that follow; nil: unknown, or no content
        attr_reader :content_length

        # @return [Boolean] whether the content ends with the connection
        def until_close? = @until_close

        # @return [Boolean] whether the connection changes to another protocol: the status is 101, or CONNECT has
        #   succeeded
        def upgrade? = @upgrade

        # @return [Boolean] whether content follows
        def body? = @chunked || @until_close || (!@content_length.nil? && @content_length > 0)

        # @return [Boolean] whether the response is interim (1xx), so that another head follows
        def interim? = @status < 200 && !@upgrade
      end
    end
  end
end
