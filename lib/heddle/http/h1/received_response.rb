# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # The head of a response as a client receives it, as {ResponseReader} makes it. All strings are binary.
      class ReceivedResponse
        # @return [Integer]
        attr_reader :status
        # @return [String] the reason phrase after the status, which has no meaning
        attr_reader :reason
        # @return [Integer] 0 for HTTP/1.0, 1 for HTTP/1.1 and later minor versions
        attr_reader :minor
        # @return [Array<String>] the header lines in their order: name in lower case, value, name, value
        attr_reader :fields
        # @return [Integer, nil] length of the content that follows; nil if it is not known or there is none
        attr_reader :content_length
        # @return [Integer] position of the first byte after the head
        attr_reader :ending

        # @return [Boolean] whether the content ends with the connection
        def until_close? = @until_close

        # @return [Boolean] whether the connection may serve another request after the content
        def keep_alive? = @keep_alive

        # @return [Boolean] whether other bytes than HTTP/1 follow: the response is 101, or CONNECT has succeeded
        def upgrade? = @upgrade

        # @return [Boolean] whether the content is chunked
        def chunked? = @chunked

        # @return [Boolean] whether content follows
        def body? = @chunked || @until_close || (!@content_length.nil? && @content_length > 0)

        # @return [Boolean] whether another head follows that answers the request
        def interim? = @status < 200 && !@upgrade
      end
    end
  end
end
