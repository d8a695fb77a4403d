# frozen_string_literal: true

require "strscan"

module Heddle
  module HTTP
    module H1
      # Parses request heads (RFC 9112, 2 to 5 and 6.3). No I/O: bytes in, a head, a refusal or "more" out.
      # One parser serves many connections of a loop; it remembers nothing of them but Host values.
      class HeadParser
        REQUEST_LINE = %r{([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([!"\x24-\x7E]+) HTTP/1\.(\d)\r\n}n
        # What can still become a request line.
        PARTIAL_LINE = /\G(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?: [ -~]*)?)?\r?\z/n
        HEAD_END = "\r\n\r\n".b.freeze
        LINE_END = "\r\n".b.freeze
        CR = 13
        LF = 10
        SLASH = 47
        QUESTION_MARK = "?".b.freeze
        NOTHING = "".b.freeze
        # Host values that are kept parsed; a client that sends others pushes all of them out at once.
        REMEMBERED_HOSTS = 256
        private_constant :REQUEST_LINE, :PARTIAL_LINE, :HEAD_END, :LINE_END, :CR, :LF, :SLASH,
                         :QUESTION_MARK, :NOTHING, :REMEMBERED_HOSTS

        # @param configuration [Configuration]
        def initialize(configuration)
          @line_limit = configuration.request_line_limit
          @header_limit = configuration.header_limit
          @body_limit = configuration.body_limit
          @fields = FieldParser.new(configuration)
          @scanner = StringScanner.new(NOTHING)
          @hosts = {}
        end

        # @param buffer [String] binary
        # @param position [Integer] where the head starts in it
        # @param seen [Integer] up to where an earlier call for the same head has looked
        # @return [RequestHead, Refusal, nil] nil when the head is not complete yet and nothing is wrong so far
        def parse(buffer, position = 0, seen = position)
          # One empty line before a request is skipped (RFC 9112, 2.2).
          if buffer.getbyte(position) == CR && buffer.getbyte(position + 1) == LF
            position += 2
            seen = position if seen < position
          end
          from = seen - 3
          from = position if from < position
          ending = buffer.byteindex(HEAD_END, from)
          ending ? complete(buffer, position, ending + 4) : incomplete(buffer, position, seen)
        end

        private

        def complete(buffer, position, ending)
          scanner = @scanner
          scanner.string = buffer
          scanner.pos = position
          unless scanner.skip(REQUEST_LINE)
            return over_long_line(buffer, position) || Fault.in_request_line(scanner.rest)
          end

          start = scanner.pos
          return long_line(buffer, position) if start - 2 - position > @line_limit
          return long_header if ending - start > @header_limit

          method = scanner[1]
          target = scanner[2]
          minor = scanner[3] == "0" ? 0 : 1
          fields = @fields.parse(scanner)
          return fields if fields.is_a?(Refusal)

          build(method, target, minor, fields, ending, ending - start)
        end

        def build(method, target, minor, fields, ending, field_bytes)
          path, query, own_authority = split_target(method, target)
          return path if path.is_a?(Refusal)

          asked = collect(fields)
          return asked if asked.is_a?(Refusal)

          host, length, coding, connection, expect, upgrade = asked
          name, port = check_host(host, minor)
          return name if name.is_a?(Refusal)

          name, port = authority(own_authority) if own_authority
          length = body_length(length, coding, minor) if length || coding
          return length if length.is_a?(Refusal)

          expects = expect ? Framing.expects_continue(expect, minor) : false
          return expects if expects.is_a?(Refusal)

          RequestHead.new(method:, target:, path:, query:, minor:, fields:, authority: own_authority || host,
                          host: name, port:, length:,
                          keep_alive: Framing.keep_alive?(connection, minor), expects_continue: expects,
                          upgrade: upgrade && Framing.upgrade(upgrade, connection, minor), ending:, field_bytes:)
        end

        # @return [Array(String, String), nil, Refusal] host and port; nil where there is none and need be none
        def check_host(host, minor)
          return minor == 0 ? nil : Refusal.new(400, "the request has no Host header") if host.nil?

          authority(host) || Refusal.new(400, "the Host header is not host[:port]")
        end

        # @return [Integer, :chunked, Refusal]
        def body_length(length, coding, minor)
          return Framing.content_length(length, @body_limit) unless coding

          refusal = Framing.transfer_encoding(coding, minor)
          return refusal if refusal.is_a?(Refusal)

          length ? Refusal.new(400, "the request has Content-Length and Transfer-Encoding") : :chunked
        end

        def split_target(method, target)
          return Target.split(method, target) if target.getbyte(0) != SLASH || method == "CONNECT"

          mark = target.byteindex(QUESTION_MARK)
          return target, NOTHING, nil unless mark

          [target.byteslice(0, mark), target.byteslice(mark + 1, target.bytesize), nil]
        end

        # The headers that decide about the message, lines of one name joined as a list.
        def collect(fields)
          host = length = coding = connection = expect = upgrade = nil
          index = 0
          count = fields.size
          while index < count
            value = fields[index + 1]
            case fields[index]
            when "host"
              return Refusal.new(400, "the request has two Host headers") if host

              host = value
            when "content-length"
              return Refusal.new(400, "the request has two different Content-Lengths") if length && length != value

              length = value
            when "transfer-encoding" then coding = join(coding, value)
            when "connection" then connection = join(connection, value)
            when "expect" then expect = join(expect, value)
            when "upgrade" then upgrade = join(upgrade, value)
            end
            index += 2
          end
          [host, length, coding, connection, expect, upgrade]
        end

        def join(list, value) = list ? "#{list}, #{value}" : value

        def authority(text)
          @hosts.fetch(text) do
            @hosts.clear if @hosts.size >= REMEMBERED_HOSTS
            @hosts[text] = Authority.split(text)
          end
        end

        # Refuses at once what no further byte can mend, so that nobody waits for the time limit.
        def incomplete(buffer, position, seen)
          line_end = buffer.byteindex(LINE_END, position)
          unless line_end
            return over_long_line(buffer, position) if buffer.bytesize - position > @line_limit + 1
            return if buffer.match?(PARTIAL_LINE, position)

            return partial_fault(buffer.byteslice(position, buffer.bytesize))
          end

          return over_long_line(buffer, position) if line_end - position > @line_limit

          if seen < line_end + 2
            @scanner.string = buffer
            @scanner.pos = position
            return Fault.in_request_line(@scanner.rest) unless @scanner.skip(REQUEST_LINE)
          end
          return long_header if buffer.bytesize - line_end - 2 > @header_limit

          from = seen - 2
          from = line_end if from < line_end
          Fault.stray(buffer.byteslice(from, buffer.bytesize)) if buffer.match?(Fault::STRAY_OR_FOLD, from)
        end

        def partial_fault(line)
          return Fault.stray(line) if line.match?(Fault::STRAY)

          Refusal.new(400, "this is no HTTP request: the method is not a token")
        end

        def over_long_line(buffer, position)
          line_end = buffer.byteindex(LINE_END, position) || buffer.bytesize
          long_line(buffer, position) if line_end - position > @line_limit
        end

        # A method longer than any that a server knows is 501, a longer target 414 (RFC 9112, 3).
        def long_line(buffer, position)
          line = buffer.byteslice(position, @line_limit)
          return Fault.in_request_line(line) unless line.match?(/\A#{Fault::TOKEN}(?: |\z)/n)
          return Refusal.new(501, "no method is that long") unless line.include?(" ")

          Refusal.new(414, "the request line is longer than #{@line_limit} bytes")
        end

        def long_header
          Refusal.new(431, "the header lines are longer than #{@header_limit} bytes together")
        end
      end
    end
  end
end
