# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Makes requests from a URL, header fields and a body.
      #
      # @api private
      class RequestBuilder
        TOKEN = /\A[A-Z0-9_-]+\z/i
        private_constant :TOKEN

        # @param headers [Hash] the client's setting; a nil value omits a default field
        # @return [Hash] these headers and the defaults
        def self.add_defaults(headers)
          Fields.merge(Defaults::HEADERS, Fields.without_framing(headers)).compact
        end

        # @param url_parser [URLParser]
        # @param headers [Hash] sent with every request
        def initialize(url_parser, headers)
          @url_parser = url_parser
          @headers = headers.freeze
          @plain = nil
        end

        # @param method [String, Symbol]
        # @param url [String]
        # @param query [Hash, nil]
        # @param headers [Hash, nil]
        # @param payload [Hash, nil] `body:`, `json:`, `form:` or `multipart:`
        # @return [Request]
        # @raise [ArgumentError]
        def build(method, url, query, headers, payload)
          method = method.name.upcase if method.is_a?(Symbol)
          raise ArgumentError, "method #{method.inspect} is not a token (RFC 9110, 5.6.2)" unless method in TOKEN

          origin, target, own = @url_parser.find(url)
          target = add_query(target, query) if query
          if method == "GET" && !headers && !payload && !own && !Trace.on?
            return Request.new(method, origin, target, plain_fields(origin), nil)
          end

          body, described = Payload.make(method, payload || {})
          given = [own, described, Fields.without_framing(headers)]
          fields = given.reduce(@headers) { |merged, more| Fields.merge(merged, more) }.compact
          Request.new(method, origin, target, fields_of(origin, decodable_ranges(fields)), body)
        end

        private

        # A part of a compressed body can't be decoded alone. So a request for a range asks for no compression, unless
        # the caller sets Accept-Encoding.
        def decodable_ranges(fields)
          return fields unless fields.any? { |name, _| name.casecmp?("range") } &&
                               fields.value?(Defaults::HEADERS["Accept-Encoding"])

          Fields.merge(fields, { "Accept-Encoding" => "identity" })
        end

        def fields_of(origin, headers)
          list = headers.any? { |name, _| name.casecmp?("host") } ? [] : ["Host", origin.authority]
          list.concat(origin.proxy_fields)
          FieldList.new(Fields.list(Trace.on? ? Trace.add(headers) : headers, list))
        end

        # Returns the fields of a request that adds none to the client's own fields. Keeps them for the latest origin.
        # One assignment replaces origin and fields, because other threads may read them.
        def plain_fields(origin)
          known, fields = @plain
          return fields if known.equal?(origin)

          fields = fields_of(origin, @headers)
          @plain = [origin, fields].freeze
          fields
        end

        def add_query(target, query)
          query = URI.encode_www_form(Arguments.fields("query:", query))
          return target if query.empty?

          "#{target}#{target.include?("?") ? "&" : "?"}#{query}"
        end
      end
    end
  end
end
