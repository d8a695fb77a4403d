# frozen_string_literal: true

require "support/h2_client"
require "support/web_socket_client"

# A connection of HTTP/2 whose streams carry WebSockets (RFC 8441), frame by frame.
class H2WebSocketConnection
  WINDOW = 65_535
  FRAME = 16_384

  # What a {WebSocketClient} reads and writes.
  class Stream
    # @return [Integer]
    attr_reader :id
    # @return [Array<H2Client::Frame>] what has come on the stream and is no DATA
    attr_reader :frames
    # @return [Boolean] whether the server has ended its side
    attr_reader :ended
    attr_accessor :window

    def initialize(connection, id, window)
      @connection = connection
      @id = id
      @window = window
      @frames = []
      @input = "".b
      @ended = false
    end

    def write(bytes)
      at = 0
      while at < bytes.bytesize
        size = @connection.room(self)
        piece = bytes.byteslice(at, [size, FRAME].min)
        @connection.send_data(self, piece)
        at += piece.bytesize
      end
    end

    # @return [String] raises EOFError at the end of the stream
    def readpartial(most)
      @connection.take_frame while @input.empty? && !over?
      raise EOFError if @input.empty?

      @input.slice!(0, most)
    end

    def wait_readable(_patience) = self

    # END_STREAM, without a WebSocket's close frame.
    def finish = @connection.client.send_frame("DATA es #{@id}")

    def reset = @connection.client.send_frame("RST_STREAM - #{@id} #8")

    # The WebSocket's helpers close what they have opened.
    def close = @connection.close

    # @return [H2Client::Frame, nil]
    def reset_frame = @frames.find { |frame| frame.type == "RST_STREAM" }

    def over? = @ended || @gone || !reset_frame.nil?

    def gone = @gone = true

    def take(frame)
      @ended ||= frame.end_stream?
      return @frames << frame unless frame.type == "DATA"

      @input << frame.payload
      @connection.credit(self, frame.payload.bytesize)
    end
  end

  # @return [H2Client]
  attr_reader :client
  # @return [Hash{Integer => Integer}] settings of the server by their numbers
  attr_reader :settings

  # @param socket [IO] connected
  # @param window [Integer] bytes that the server may send on a stream before it hears of more
  def initialize(socket, window: WINDOW)
    @client = H2Client.new(socket)
    @socket = socket
    @streams = {}
    @settings = {}
    @window = WINDOW
    @credit = true
    @client.send_bytes(H2Client::PREFACE)
    @client.send_frame("SETTINGS - 0 #{format("%<id>04x%<value>08x", id: 4, value: window)}")
    take_frame until @settings.any?
  end

  # Asks for a WebSocket, or without a protocol for anything else.
  # @param fields [Hash] more header fields
  # @return [Stream]
  def connect(path = "/", method: "CONNECT", protocol: "websocket", **fields)
    stream = Stream.new(self, (@streams.keys.max || -1) + 2, @settings.fetch(4, WINDOW))
    @streams[stream.id] = stream
    fields = { "sec-websocket-version" => "13" }.merge(fields.transform_keys { |name| name.to_s.tr("_", "-") }).compact
    pseudo = { ":method" => method, ":protocol" => protocol, ":scheme" => "http", ":path" => path,
               ":authority" => "127.0.0.1" }.compact
    words = pseudo.merge(fields).map { |name, value| "#{name}=#{value}" }.join(" ")
    @client.send_frame("HEADERS #{protocol ? "eh" : "eh+es"} #{stream.id} #{words}")
    stream
  end

  # Whether what comes is credited: a client that does not is one that does not read.
  attr_writer :credit

  def credit(stream, size)
    return unless @credit && size.positive?

    @client.send_frame("WINDOW_UPDATE - 0 ##{size}")
    @client.send_frame("WINDOW_UPDATE - #{stream.id} ##{size}") unless stream.ended
  end

  # @return [Integer] bytes that may be sent on the stream; waits until it is more than none
  def room(stream)
    take_frame while [@window, stream.window].min <= 0 && !stream.over?
    [@window, stream.window].min.clamp(1..)
  end

  def send_data(stream, bytes)
    @window -= bytes.bytesize
    stream.window -= bytes.bytesize
    @client.send_bytes([bytes.bytesize >> 16, bytes.bytesize & 0xFFFF, 0, 0, stream.id].pack("CnCCN") + bytes)
  end

  # Reads one frame.
  def take_frame
    frame = @client.read_frame or return @streams.each_value(&:gone)
    case frame.type
    when "SETTINGS" then take_settings(frame)
    when "PING" then @client.send_frame("PING ack 0 #{frame.payload.unpack1("H*")}") unless frame.flags.anybits?(1)
    when "WINDOW_UPDATE" then widen(frame)
    else @streams[frame.stream]&.take(frame)
    end
  end

  def close = @socket.close

  private

  def take_settings(frame)
    return if frame.flags.anybits?(1)

    @settings.merge!(frame.payload.scan(/.{6}/mn).to_h { |setting| setting.unpack("nN") })
    @client.send_frame("SETTINGS ack 0")
  end

  def widen(frame)
    size = frame.payload.unpack1("N")
    if frame.stream.zero? then @window += size
    elsif (stream = @streams[frame.stream]) then stream.window += size
    end
  end
end

# A WebSocket on a stream.
class H2WebSocketClient < WebSocketClient
  # @return [Integer] of the response
  attr_reader :status

  # @param stream [H2WebSocketConnection::Stream]
  def initialize(stream) # rubocop:disable Lint/MissingSuper -- the request has been sent
    @io = stream
    @buffer = "".b
    connection = stream.instance_variable_get(:@connection)
    connection.take_frame until stream.frames.any? || stream.over?
    # The server writes :status with an index, or as three digits.
    block = stream.frames.first.payload.b
    @status = case block
              when /\A(?:\x20|\x3f\xe1\x1f)*\x88/n then 200
              else block[/\A.{0,4}?(\d{3})/mn, 1].to_i
              end
  end
end
