# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Header fields of requests.
      #
      # @api private
      module Fields
        NAME = /\A[!#$%&'*+.^_`|~0-9A-Za-z-]+\z/
        CONTROL_CHARACTER = /[\x00-\x08\x0a-\x1f\x7f]/n
        # Only the client may frame a body (RFC 9112, 6): with a wrong length, the end of the body would become a second
        # request.
        FRAMING = /\A(?:content-length|transfer-encoding)\z/i
        private_constant :NAME, :CONTROL_CHARACTER, :FRAMING

        module_function

        # @param headers [Hash] a value is a String, an Array of them, or nil: no such field
        # @param list [Array<String>] what comes before: name, value, name, value
        # @return [Array<String>] the same list
        # @raise [ArgumentError] for a name or value that can't be in a field
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

        # @param list [Array<String>] name, value, name, value
        # @return [String] field lines of HTTP/1.1
        def lines(list)
          text = String.new
          i = 0
          while i < list.size
            value = list[i + 1]
            # Values may have several encodings, such as binary ones from another response.
            text << list[i] << ": " << (value.ascii_only? ? value : value.b) << "\r\n"
            i += 2
          end
          text
        end

        def checked(name, value)
          return value unless (value.ascii_only? ? value : value.b).match?(CONTROL_CHARACTER)

          raise ArgumentError, "header #{name}: the value #{value.inspect} has a control character"
        end

        # @param headers [Hash, nil] of the user
        # @return [Hash, nil] the same
        # @raise [ArgumentError] for fields that are the client's alone
        def without_framing(headers)
          name = headers&.each_key&.find { |one| one.to_s.match?(FRAMING) } or return headers

          raise ArgumentError, "header #{name}: leave it out, because the client sets it: Content-Length if the " \
                               "body's size is known, otherwise Transfer-Encoding"
        end

        # @return [Hash] the defaults, replaced by headers of the same name in any case
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

        # @param fields [Array<String>] name, value, name, value
        # @return [String, nil]
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
