# frozen_string_literal: true

require "heddle/http"
require_relative "../../../support/native_library"

module Heddle
  module HTTP
    module H1
      # A request's head, whole and checked, as {HeadParser} makes it. All strings are binary, as they were sent.
      class RequestHead
        # @return [String] the method, as sent: methods are case-sensitive
        attr_reader :method
        # @return [String] the request target, as sent
        attr_reader :target
        # @return [String] the target's path, `*` or, for CONNECT, `host:port`
        attr_reader :path
        # @return [String] what follows the target's first `?`, empty if there is none
        attr_reader :query
        # @return [Integer] 0 for HTTP/1.0, 1 for HTTP/1.1 and later minor versions
        attr_reader :minor
        # @return [Array<String>] the header lines in their order: name in lower case, value, name, value
        attr_reader :fields
        # @return [String, nil] `host[:port]` of the target or else of the Host header; nil only in HTTP/1.0
        attr_reader :authority
        # @return [String, nil] the authority's host, an IPv6 address with its brackets; may be empty
        attr_reader :host
        # @return [String, nil] the authority's port, empty if it has none
        attr_reader :port
        # @return [Integer, nil] the body's length; nil if it is not known or there is no body
        attr_reader :content_length
        # @return [Array<String>, nil] the protocols of the Upgrade header, where it counts
        attr_reader :upgrade
        # @return [Integer] position of the first byte after the head
        attr_reader :ending
        # @return [Integer] size of the header lines in bytes
        attr_reader :field_bytes
        # @return [Integer] number of the header lines, with those that were dropped
        attr_reader :line_count

        # @return [Boolean] whether the body is chunked
        def chunked? = @chunked

        # @return [Boolean] whether the client wants the connection to stay open after the response
        def keep_alive? = @keep_alive

        # @return [Boolean] whether the client offers to change the protocol
        def upgrade_offered? = !@upgrade.nil?

        # @return [Boolean] whether the client waits for `100 Continue` before it sends the body
        def expects_continue? = @expects_continue

        # @return [Boolean] whether a body follows
        def body? = @chunked || (!@content_length.nil? && @content_length > 0)

        # @return [Boolean] whether the answer has no content whatever its status
        def head? = @method == "HEAD"

        # @return [Boolean]
        def connect? = @method == "CONNECT"
      end

      # What {ResponseParser} tells beyond what the client asks.
      class ReceivedResponse
        # @return [Integer] 0 for HTTP/1.0, 1 for HTTP/1.1 and later minor versions
        attr_reader :minor
        # @return [Integer] position of the first byte after the head
        attr_reader :ending

        # @return [Boolean] whether the connection may serve another request after the content
        def keep_alive? = @keep_alive

        # @return [Boolean] whether the content is chunked
        def chunked? = @chunked
      end
    end
  end
end

require NativeLibrary.new(File.expand_path("head_parsers.c", __dir__)).path
