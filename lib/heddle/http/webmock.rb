# frozen_string_literal: true

require "webmock"
require "webmock/http_lib_adapters/http_lib_adapter"
require "heddle/http/client"

module Heddle
  # Requests and responses on the wire.
  module HTTP
    # Lets WebMock stub the requests of {Client}. Add `require "heddle/http/webmock"` to the test helper, after webmock.
    # Requests of {Client#stream} can be stubbed, too. The client follows a stubbed redirect, and WebMock also gets the
    # request to the new URL.
    class WebMockAdapter < ::WebMock::HttpLibAdapter
      adapter_for :heddle

      # Prepended to {Client::Exchange}. Returns stubbed responses while WebMock is enabled.
      module Stubbed
        def head
          return super unless WebMockAdapter.enabled?

          @signature = WebMockAdapter.signature(@request)
          ::WebMock::RequestRegistry.instance.requested_signatures.put(@signature)
          @stubbed = ::WebMock::StubRegistry.instance.response_for_request(@signature)
          return WebMockAdapter.head(@stubbed).tap { called(@stubbed, false) } if @stubbed
          raise ::WebMock::NetConnectNotAllowedError, @signature unless ::WebMock.net_connect_allowed?(@signature.uri)

          super.tap { |head| @real = WebMockAdapter.response(head) if ::WebMock::CallbackRegistry.any_callbacks? }
        end

        def read_all(limit)
          return super.tap { |body| received(body) && received(nil) } unless @stubbed

          body = @stubbed.body.to_s.b
          return body if body.bytesize <= limit

          raise Client::BodyTooLargeError, "the stubbed body is larger than #{limit} bytes"
        end

        def read_piece
          return super.tap { |piece| received(piece) } unless @stubbed

          body = @read ? "" : @stubbed.body.to_s.b
          @read = true
          body.empty? ? nil : body
        end

        private

        # Collects a real response's body for the callbacks, which are called when it is complete.
        # @param piece [String, nil] nil: the body is complete
        def received(piece)
          return unless (response = @real)
          return response.body += piece if piece

          @real = nil
          called(response, true)
        end

        def called(response, real)
          ::WebMock::CallbackRegistry.invoke_callbacks({ lib: :heddle, real_request: real }, @signature, response)
        end
      end

      # A stub's head, with the methods of {H1::ReceivedResponse} that {Client} calls.
      StubbedHead = Struct.new(:status, :reason, :fields) do
        def body? = true
        def until_close? = false
      end

      class << self
        def enable!
          Client::Exchange.prepend(Stubbed) unless Client::Exchange.include?(Stubbed)
          @enabled = true
        end

        def disable!
          @enabled = false
        end

        # @return [Boolean]
        def enabled? = @enabled

        # @param request [Client::Request]
        # @return [WebMock::RequestSignature]
        def signature(request)
          headers = request.fields.each.reject { |name, _| name.casecmp?("host") }.to_h
          body = request.streams_body? ? whole(request.body.source) : request.body
          ::WebMock::RequestSignature.new(request.method.downcase.to_sym, "#{request.origin}#{request.target}",
                                          body: body, headers: headers)
        end

        # @param source [#read, #each]
        def whole(source) = source.respond_to?(:read) ? source.read : source.each.to_a.join

        # @param head [H1::ReceivedResponse, H2::ReceivedResponse]
        # @return [WebMock::Response] still without a body
        def response(head)
          headers = head.fields.each_slice(2).group_by(&:first).transform_values { |pairs| pairs.map(&:last) }
          ::WebMock::Response.new(status: [head.status, head.reason.to_s], headers:, body: "".b)
        end

        # @param response [WebMock::Response]
        # @return [StubbedHead]
        def head(response)
          raise Client::ConnectTimeoutError, "WebMock: the request times out" if response.should_timeout

          response.raise_error_if_any
          pairs = (response.headers || {}).flat_map { |name, value| [name.downcase].product(Array(value)) }
          StubbedHead.new(response.status.first.to_i, response.status.last, pairs.flatten)
        end
      end

      private_constant :Stubbed, :StubbedHead
    end

    ::WebMock.enable!(only: [:heddle]) if WebMockAdapter.enabled?.nil?
  end
end
