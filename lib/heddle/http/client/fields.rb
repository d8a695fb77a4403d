# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Functions for the header fields of requests.
      #
      # @api private
      module Fields
        NAME = /\A[!#$%&'*+.^_`|~0-9A-Za-z-]+\z/
        CONTROL_CHARACTER = /[\x00-\x08\x0a-\x1f\x7f]/n
        # Only the client may set these fields (RFC 9112, 6): with a wrong length, the server would read the end of the
        # body as a second request.
        FRAMING = /\A(?:content-length|transfer-encoding)\z/i
        private_constant :NAME, :CONTROL_CHARACTER, :FRAMING

        module_function

        # @param headers [Hash] a value is a String, an Array of Strings, or nil to omit the field
        # @param list [Array<String>] names and values, alternating; the fields are appended to it
        # @return [Array<String>] the same list
        # @raise [ArgumentError] for an invalid field name or value
        def list(headers, list = [])
          headers.each do |name, values|
            name = name.to_s
            raise ArgumentError, "header name #{name.inspect} is not a token (RFC 9110, 5.1)" unless name.match?(NAME)

            if values.is_a?(Array)
              values.each { |value| list << name << checked(name, value.to_s) }
            elsif !values.nil?
              list << name << checked(name, values.to_s)
            end
          end
          list
        end

        # @param list [Array<String>] names and values, alternating
        # @return [String] the field lines of HTTP/1.1
        def lines(list)
          text = String.new
          i = 0
          while i < list.size
            value = list[i + 1]
            # Values may have different encodings: a value that was copied from a response is binary.
            text << list[i] << ": " << (value.ascii_only? ? value : value.b) << "\r\n"
            i += 2
          end
          text
        end

        def checked(name, value)
          return value unless (value.ascii_only? ? value : value.b).match?(CONTROL_CHARACTER)

          raise ArgumentError, "header #{name}: the value #{value.inspect} has a control character"
        end

        # @param headers [Hash, nil] the caller's header fields
        # @return [Hash, nil] the same hash
        # @raise [ArgumentError] if it has a field that only the client may set
        def without_framing(headers)
          name, = headers && Arguments.fields("headers:", headers).find { |one, _| one.to_s.match?(FRAMING) }
          return headers unless name

          raise ArgumentError, "header #{name}: leave it out. The client itself sends Content-Length if it knows the " \
                               "body's size, otherwise Transfer-Encoding"
        end

        # @return [Hash] the defaults, overridden by headers; names are compared without regard to case
        def merge(defaults, headers)
          return defaults if headers.nil? || headers.empty?

          merged = defaults.dup
          headers.each do |name, value|
            name = name.to_s
            merged.delete_if { |other, _| other.casecmp?(name) }
            merged[name] = value
          end
          merged
        end

        # @param uri [URI::HTTP]
        # @return [String, nil] its user name and password as credentials (RFC 7617); nil: it has none
        def credentials(uri)
          return unless uri.userinfo

          "Basic #{[[uri.user, uri.password].map { |part| URI.decode_uri_component(part.to_s) }.join(":")].pack("m0")}"
        end

        # @param fields [Array<String>] names in lower case and values, alternating
        # @param name [String] in lower case
        # @return [String, nil] the field's values, joined by commas; nil: there is no such field
        def value(fields, name)
          found = nil
          i = 0
          while i < fields.size
            found = found ? "#{found}, #{fields[i + 1]}" : fields[i + 1] if fields[i] == name
            i += 2
          end
          found
        end
      end
    end
  end
end
