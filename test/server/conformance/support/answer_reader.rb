# frozen_string_literal: true

require "time"

module Conformance
  # An answer holds bytes that RFC 9110 or RFC 9112 does not allow there.
  class Malformed < StandardError
  end

  # Nothing comes, though something should.
  class Silence < Malformed
  end

  # One answer as it came over the wire. `complete` is false when the connection ended before the answer did.
  Answer = Data.define(:status, :reason, :fields, :content, :framing, :complete) do
    # @return [String, nil] the values of a field, joined as a list
    def [](name)
      values = fields.filter_map { |key, value| value if key == name }
      values.join(", ") unless values.empty?
    end

    def closes? = self["connection"].to_s.downcase.split(/\s*,\s*/).include?("close")
  end

  # Reads answers, and reports everything in them that the standards forbid. Shares no code with the server.
  class AnswerReader
    TOKEN = /\A[!#$%&'*+\-.^_`|~0-9A-Za-z]+\z/n
    STATUS_LINE = %r{\AHTTP/1\.1 (\d{3}) ([\t -~\x80-\xFF]*)\z}n
    VALUE = /\A(?:[!-~\x80-\xFF](?:[\t -~\x80-\xFF]*[!-~\x80-\xFF])?)?\z/n
    IMF_DATE = /\A[MTWFS][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\z/n

    # @param socket [Socket]
    # @param patience [Numeric] seconds to wait for any byte
    def initialize(socket, patience)
      @socket = socket
      @patience = patience
      @buffer = "".b
    end

    # @param method [String] of the request
    # @return [Answer, nil] nil when the connection has ended, properly, without a further one
    # @raise [Malformed]
    # @raise [Errno::ECONNRESET]
    def read(method = "GET")
      head = take_until("\r\n\r\n") or return
      line, *lines = head.delete_suffix("\r\n\r\n").split("\r\n", -1)
      match = STATUS_LINE.match(line) or raise Malformed, "status line #{line.inspect}"
      status = match[1].to_i
      fields = lines.map { |one| field(one) }
      check(status, fields)
      framing = framing(method, status, fields)
      content, complete = content(framing)
      Answer.new(status:, reason: match[2], fields:, content:, framing: framing.first, complete:)
    end

    # @return [String] all that is left until the connection ends
    def rest
      nil while fill
      take(@buffer.bytesize)
    end

    private

    def field(line)
      name, value = line.split(":", 2)
      raise Malformed, "header line #{line.inspect}" unless value && TOKEN.match?(name)

      value = value.delete_prefix(" ")
      raise Malformed, "value of #{line.inspect}" unless VALUE.match?(value)

      [name.downcase, value]
    end

    def check(status, fields)
      names = fields.map(&:first)
      once(names, %w[content-length transfer-encoding date upgrade connection content-type])
      both = %w[content-length transfer-encoding] & names
      raise Malformed, "content-length and transfer-encoding" if both.size == 2
      raise Malformed, "#{both} in a #{status}" if both.any? && (status < 200 || status == 204)
      return if status < 200

      date = fields.assoc("date")&.last
      raise Malformed, "date #{date.inspect}" unless date && IMF_DATE.match?(date) && Time.httpdate(date)
      raise Malformed, "a server field that nobody asked for" if names.include?("server")
    end

    def once(names, singular)
      twice = singular.select { |name| names.count(name) > 1 }
      raise Malformed, "#{twice.join(", ")} more than once" if twice.any?
    end

    def framing(method, status, fields)
      length = fields.assoc("content-length")&.last
      coding = fields.assoc("transfer-encoding")&.last
      raise Malformed, "content-length #{length.inspect}" if length && !length.match?(/\A\d+\z/)
      raise Malformed, "transfer-encoding #{coding.inspect}" if coding && coding != "chunked"
      return [:none] if method == "HEAD" || status < 200 || [204, 304].include?(status)
      return [:chunked] if coding

      length ? [:length, length.to_i] : [:close]
    end

    def content(framing)
      case framing
      in [:none] then ["".b, true]
      in [:length, length] then counted(length)
      in [:close] then [rest, true]
      in [:chunked] then chunked
      end
    end

    def counted(length)
      nil while @buffer.bytesize < length && fill
      bytes = take([length, @buffer.bytesize].min)
      [bytes, bytes.bytesize == length]
    end

    def chunked
      content = "".b
      loop do
        line = take_until("\r\n", partial: true) or return [content, false]
        raise Malformed, "chunk size #{line.inspect}" unless line.match?(/\A(?:0|[1-9a-fA-F]\h*)\r\n\z/)

        size = line.to_i(16)
        bytes, complete = counted(size)
        content << bytes
        return [content, false] unless complete

        ending = take_until("\r\n", partial: true) or return [content, false]
        raise Malformed, "#{ending.inspect} after a chunk" unless ending == "\r\n"
        return [content, true] if size.zero?
      end
    end

    def take_until(ending, partial: false)
      until (index = @buffer.index(ending))
        next if fill
        return if @buffer.empty? || partial

        raise Malformed, "the connection ends in #{@buffer.inspect}"
      end
      take(index + ending.bytesize)
    end

    def take(count) = @buffer.slice!(0, count)

    def fill
      raise Silence, "nothing more comes after #{@buffer.inspect}" unless @socket.wait_readable(@patience)

      bytes = @socket.read_nonblock(65_536, exception: false)
      return true if bytes == :wait_readable

      bytes && @buffer << bytes && true
    end
  end
end
