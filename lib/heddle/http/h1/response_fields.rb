# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # Writes the header lines that an application returned, and takes out those that are about the connection:
      # framing is the server's business. One object for each answer.
      class ResponseFields
        TOKEN = /\A[!#$%&'*+\-.^_`|~0-9A-Za-z]+\z/
        FORBIDDEN = /[\r\n\0]/
        DIGITS = /\A\d+\z/
        LIST = /[ \t]*,[ \t]*/
        private_constant :TOKEN, :FORBIDDEN, :DIGITS, :LIST

        # @return [Integer, nil] what the application's content-length says
        attr_reader :content_length
        # @return [Boolean] whether the application asks to close the connection
        attr_reader :close
        # @return [Boolean] whether the application has set a date
        attr_reader :date
        # @return [Boolean] whether the application says that it has chunked the content itself
        attr_reader :chunked
        # @return [Boolean] whether the application's connection header names an upgrade
        attr_reader :upgrade

        # @param names [Hash] names that were found right before, to their lower case; filled
        def initialize(names)
          @names = names
          @content_length = nil
          @close = @date = @chunked = @upgrade = false
        end

        # @param headers [Hash{String => String, Array<String>}]
        # @param output [String] binary; the lines are appended
        # @raise [InvalidResponse] for what must not reach the wire
        def write(headers, output)
          headers.each do |name, value|
            known = @names[name] || check_name(name)
            case known
            when "content-length" then take_length(value)
            when "transfer-encoding" then take_coding(value)
            when "connection" then take_connection(value)
            when "keep-alive", "proxy-connection", "status", :internal then next
            else
              @date = true if known == "date"
              write_field(known, value, output)
            end
          end
        end

        private

        def write_field(name, value, output)
          return value.each { |one| write_line(name, one, output) } if value.is_a?(Array)

          write_line(name, value, output)
        end

        def write_line(name, value, output)
          value = value.to_s unless value.is_a?(String)
          # A regular expression refuses strings with broken encoding, bytes it takes.
          value = value.b unless value.ascii_only?
          if value.match?(FORBIDDEN)
            raise InvalidResponse, "the value of the header #{name} holds CR, LF or NUL: #{value.inspect} " \
                                   "(several values of one header are an array)"
          end

          output << name << ": " << value << "\r\n"
        end

        def check_name(name)
          raise InvalidResponse, "a header name is #{name.inspect}, and not a string" unless name.is_a?(String)

          known = name.start_with?("rack.") ? :internal : name.downcase.b.freeze
          unless known == :internal || (name.ascii_only? && TOKEN.match?(name))
            raise InvalidResponse, "the header name #{name.inspect} has characters that are not allowed"
          end

          # Applications have few names; one that makes them up as it goes must not fill the memory.
          @names.clear if @names.size >= 1_000
          @names[name.frozen? ? name : name.dup.freeze] = known
        end

        def take_length(value)
          value = value.first if value.is_a?(Array) && value.uniq.size == 1
          text = value.to_s
          raise InvalidResponse, "the content-length is #{value.inspect}, and not a number" unless DIGITS.match?(text)

          length = text.to_i
          if @content_length && @content_length != length
            raise InvalidResponse, "there are two different content-lengths"
          end

          @content_length = length
        end

        def take_coding(value)
          codings = options(value)
          return if codings == ["identity"]
          return @chunked = true if codings == ["chunked"]

          raise InvalidResponse, "the transfer-encoding is #{value.inspect}: the server frames answers itself"
        end

        def take_connection(value)
          asked = options(value)
          @close ||= asked.include?("close")
          @upgrade ||= asked.include?("upgrade")
        end

        def options(value) = Array(value).join(",").downcase.split(LIST)
      end
    end
  end
end
