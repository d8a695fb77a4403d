# frozen_string_literal: true

require "securerandom"
require "socket"

# The client's side of a WebSocket, frame by frame, so that a test can send what no library does.
class WebSocketClient
  PATIENCE = 60
  Frame = Struct.new(:final, :opcode, :payload, :rsv) do
    # @return [Integer, nil] of a close frame
    def code = opcode == 8 && payload.bytesize >= 2 ? payload.unpack1("n") : nil

    # @return [String] of a close frame
    def reason = payload.byteslice(2..).force_encoding("UTF-8")
  end

  # @return [String] the head of the response
  attr_reader :head
  # @return [IO]
  attr_reader :io

  # @param io [IO] connected
  # @param path [String]
  # @param fields [Hash] more header fields, or others; nil leaves one out
  def initialize(io, path = "/", host: "127.0.0.1", **fields)
    @io = io
    @buffer = "".b
    own = { "host" => host, "connection" => "Upgrade", "upgrade" => "websocket",
            "sec-websocket-key" => "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version" => "13" }
    lines = own.merge(fields.transform_keys { |name| name.to_s.tr("_", "-") }).compact
    @io.write("GET #{path} HTTP/1.1\r\n#{lines.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n")
    @head = read_head
  end

  def status = head[/\A\S+ (\d+)/, 1].to_i

  def text(string) = write(1, string)

  def binary(string) = write(2, string)

  def close(code = 1000, reason = "") = write(8, [code].pack("n") + reason.b)

  # @param first [Integer] the first byte
  def write(opcode, payload = "", final: true, first: nil, mask: SecureRandom.bytes(4))
    @io.write(frame(opcode, payload, final:, first:, mask:))
  end

  def frame(opcode, payload = "", final: true, first: nil, mask: SecureRandom.bytes(4))
    payload = payload.b
    size = payload.bytesize
    bit = mask ? 0x80 : 0
    head = [first || (opcode | (final ? 0x80 : 0))].pack("C")
    head << if size < 126 then [bit | size].pack("C")
            elsif size < 65_536 then [bit | 126, size].pack("Cn")
            else [bit | 127, size].pack("CQ>")
            end
    return head << payload unless mask
    return head << mask if size.zero?

    key = (mask * ((size / 4) + 1)).byteslice(0, size)
    head << mask << [(payload.unpack1("H*").hex ^ key.unpack1("H*").hex).to_s(16).rjust(size * 2, "0")].pack("H*")
  end

  def raw(bytes) = @io.write(bytes)

  # @return [Frame, nil] nil at the end of input
  def read
    first, second = take(2)&.unpack("CC")
    return unless first
    raise "a server's frame is masked" if second.anybits?(0x80)

    size = second & 0x7f
    case size
    when 126 then size = take(2).unpack1("n")
    when 127 then size = take(8).unpack1("Q>")
    end
    payload = take(size) or return
    Frame.new(first.anybits?(0x80), first & 0x0f, payload, (first >> 4) & 7)
  end

  # @return [String, nil] the next message, other frames skipped; nil at the end, or after a close frame
  def message
    while (frame = read)
      return if frame.opcode == 8
      next if frame.opcode > 8

      return frame.opcode == 1 ? frame.payload.force_encoding("UTF-8") : frame.payload
    end
  end

  # @return [Frame] the next close frame, others skipped
  def closing
    while (frame = read)
      return frame if frame.opcode == 8
    end
    raise "the connection ended without a close frame"
  end

  # @return [String] of a response that is no upgrade
  def content(size) = take(size)

  # @return [Boolean] whether the server has ended the connection
  def ended? = take(1).nil?

  private

  def read_head
    until (index = @buffer.index("\r\n\r\n"))
      fill or raise "no whole head came: #{@buffer.inspect}"
    end
    @buffer.slice!(0, index + 4)
  end

  def take(size)
    fill or return while @buffer.bytesize < size
    @buffer.slice!(0, size)
  end

  def fill
    raise "nothing came in #{PATIENCE} s" unless @io.wait_readable(PATIENCE)

    @buffer << @io.readpartial(65_536)
  rescue EOFError, Errno::ECONNRESET
    nil
  end
end
