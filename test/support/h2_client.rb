# frozen_string_literal: true

require "socket"
require "timeout"

# A client of HTTP/2 that sends whatever frames it is told to, in the words of test/http/h2/cases.txt, and reads what
# comes.
class H2Client
  PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".b
  TYPES = %w[DATA HEADERS PRIORITY RST_STREAM SETTINGS PUSH_PROMISE PING GOAWAY WINDOW_UPDATE CONTINUATION].freeze
  ERRORS = %w[NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED FRAME_SIZE_ERROR
              REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM INADEQUATE_SECURITY
              HTTP_1_1_REQUIRED].freeze
  FLAGS = { "-" => 0, "es" => 1, "ack" => 1, "eh" => 4, "pad" => 8, "pri" => 32 }.freeze
  # Seconds.
  PATIENCE = 60

  # A frame that has come.
  Frame = Struct.new(:type, :flags, :stream, :payload) do
    # @return [Boolean]
    def end_stream? = %w[DATA HEADERS].include?(type) && flags.anybits?(1)

    # @return [String, nil] the name of its error code
    def error
      case type
      when "RST_STREAM" then ERRORS[payload.unpack1("N")]
      when "GOAWAY" then ERRORS[payload.unpack1("x4N")]
      end
    end
  end

  # @param socket [IO] connected
  def initialize(socket)
    @socket = socket
    @gone = false
  end

  def close = @socket.close

  # FIN: the other direction stays.
  def close_write = @socket.close_write

  # Sends bytes. What is sent to a server that has closed is lost.
  def send_bytes(bytes)
    @socket.write(bytes) unless @gone
  rescue Errno::EPIPE, Errno::ECONNRESET
    @gone = true
  end

  def send_preface
    send_bytes(PREFACE)
    send_frame("SETTINGS - 0")
    send_frame("SETTINGS ack 0")
  end

  # @param line [String] type, flags, stream and payload
  def send_frame(line)
    type, flags, stream, payload = line.split(" ", 4)
    payload = bytes_of(payload.to_s)
    number = TYPES.index(type) || type.hex
    bits = flags.split("+").sum { |name| FLAGS.fetch(name) { name.hex } }
    send_bytes([payload.bytesize >> 16, payload.bytesize & 0xFFFF, number, bits, stream.to_i].pack("CnCCN") + payload)
  end

  # @return [Frame, nil] nil at the end of the connection
  def read_frame
    Timeout.timeout(PATIENCE) do
      header = @socket.read(9)
      return if header.nil? || header.bytesize < 9

      high, low, type, flags, stream = header.unpack("CnCCN")
      Frame.new(TYPES[type] || type, flags, stream, @socket.read((high << 16) | low))
    end
  rescue Errno::ECONNRESET
    nil
  end

  # @return [String] what the words mean
  def bytes_of(words)
    words.scan(/"[^"]*"|\S+/).map { |word| word_bytes(word) }.join.b
  end

  private

  def word_bytes(word)
    case word
    when /\A"(.*)"\z/ then Regexp.last_match(1).b
    when "get", "post", "head" then field(":method", word.upcase) + "\x84\x86\x41\x09localhost".b
    when /\A#(\d+)\z/ then [Regexp.last_match(1).to_i].pack("N")
    when /\A((?:\h\h)+)(?:\*(\d+))?\z/ then [Regexp.last_match(1)].pack("H*") * (Regexp.last_match(2) || 1).to_i
    when /\A(:?[^=:]+)=(.*)\z/ then field(Regexp.last_match(1), Regexp.last_match(2))
    when /\A(\d+):(\d+)\z/ then [Regexp.last_match(1).to_i, Regexp.last_match(2).to_i].pack("nN")
    else raise ArgumentError, "what is #{word}?"
    end
  end

  # Neither indexed nor coded.
  def field(name, value) = [0, name.bytesize, name, value.bytesize, value].pack("CCa*Ca*")
end
