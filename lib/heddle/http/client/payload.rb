# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The content of a request: a body, and the fields that describe it.
      #
      # @api private
      module Payload
        # Methods whose requests have Content-Length: 0 when the body is empty (RFC 9110, 8.6).
        WITH_BODY = %w[POST PUT PATCH].freeze
        private_constant :WITH_BODY

        module_function

        # @param given [Hash] one of body, json, form and multipart
        # @return [Array(String or Upload or nil, Hash)] the body, and the header fields that describe it
        # @raise [ArgumentError] for two kinds of body at once
        def make(method, given)
          raise ArgumentError, "#{given.keys.join(" and ")}: give only one, as a request has one body" if given.size > 1

          body, type = encode(*given.first)
          fields = type ? { "Content-Type" => type } : {}
          return [body, fields.merge(framing(body))] if body

          [nil, WITH_BODY.include?(method) ? { "Content-Length" => "0" } : {}]
        end

        def encode(kind = nil, value = nil)
          case kind
          when :json
            require "json"
            [JSON.generate(value), "application/json"]
          when :form then [URI.encode_www_form(Arguments.fields("form:", value)), "application/x-www-form-urlencoded"]
          when :multipart then multipart(value)
          when :body then [checked(value), nil]
          end
        end

        def checked(body)
          return body.frozen? ? body : body.dup.freeze if body.is_a?(String) # so that its size can't change

          readable = body.respond_to?(:read) && !body.respond_to?(:basename) # each `read` of a Pathname starts anew
          return Upload.new(body) if readable || (body.respond_to?(:each) && !body.is_a?(Hash))

          raise ArgumentError, "body: is a #{body.class}, but must be a String, an IO or another object with `read`, " \
                               "or an object with `each`"
        end

        def framing(body)
          size = body.is_a?(String) ? body.bytesize : body.size
          size ? { "Content-Length" => size.to_s } : { "Transfer-Encoding" => "chunked" }
        end

        # RFC 7578. Values are Strings or IOs; an IO's part has its file name.
        def multipart(parts)
          boundary = "heddle-#{SecureRandom.hex(16)}"
          body = +"".b
          Arguments.fields("multipart:", parts).each do |name, value|
            body << "--#{boundary}\r\nContent-Disposition: form-data; name=\"#{quoted(name)}\""
            if value.respond_to?(:read)
              body << "; filename=\"#{quoted(file_name(value))}\"\r\nContent-Type: application/octet-stream"
              value = value.read
            end
            body << "\r\n\r\n" << value.to_s.b << "\r\n"
          end
          [body << "--#{boundary}--\r\n", "multipart/form-data; boundary=#{boundary}"]
        end

        def file_name(io) = io.respond_to?(:path) && io.path ? File.basename(io.path) : "file"

        # Escapes like browsers (WHATWG HTML, 4.10.21.8).
        def quoted(text) = text.to_s.b.gsub(/["\r\n]/) { |character| format("%%%02X", character.ord) }
      end
    end
  end
end
