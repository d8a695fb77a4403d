# frozen_string_literal: true

require "socket"

# A client that sends one request after another, over one connection or over a new one for each. It sends none twice:
# a request that fails has failed.
class SteadyClient
  # Seconds that it waits for anything.
  TIMEOUT = 60

  # @!attribute status [Integer]
  # @!attribute worker [Integer, nil] process that has answered, which the application tells in `x-worker`
  # @!attribute last [Boolean] whether the server closes the connection after it
  Response = Data.define(:status, :worker, :body, :last)

  # @return [Integer, nil] process that has answered on the last connection; nil: none has
  attr_reader :worker
  # @return [Integer] connections that were closed between two requests without an announcement
  attr_reader :closed

  # @param host [String]
  # @param port [Integer]
  # @param kept [Boolean] whether it keeps its connection
  def initialize(host, port, kept: true)
    @host = host
    @port = port
    @kept = kept
    @socket = @worker = nil
    @closed = 0
  end

  # @param body [String, nil]
  # @param type [String] of the body
  # @return [Response]
  # @raise [SystemCallError, IOError] when there is no response, or not all of it
  def call(method, path, body = nil, type = "application/x-www-form-urlencoded")
    connect
    fields = body ? "Content-Type: #{type}\r\nContent-Length: #{body.bytesize}\r\n" : ""
    @socket.write("#{method} #{path} HTTP/1.1\r\nHost: #{@host}:#{@port}\r\n#{fields}\r\n#{body}")
    response = read_response
    @worker = response.worker || @worker
    close if response.last || !@kept
    response
  rescue SystemCallError, IOError
    close
    raise
  end

  # @return [void]
  def close = @socket = @socket&.close

  private

  def connect
    if @socket&.wait_readable(0) # no request is running: it can only have ended
      @closed += 1
      close
    end
    return if @socket

    @worker = nil
    @socket = TCPSocket.new(@host, @port)
    @socket.timeout = TIMEOUT
  end

  def read_response
    head = @socket.gets("\r\n\r\n") or raise EOFError, "closed without a response"
    body = head.match?(/^transfer-encoding: chunked/i) ? read_chunks : read(head[/^content-length: (\d+)/i, 1].to_i)
    Response.new(status: head[/\A\S+ (\d+)/, 1].to_i, worker: head[/^x-worker: (\d+)/i, 1]&.to_i, body:,
                 last: head.match?(/^connection: close/i))
  end

  def read_chunks
    text = +""
    until (size = @socket.readline.to_i(16)).zero?
      text << read(size)
      read(2)
    end
    read(2)
    text
  end

  def read(size)
    text = @socket.read(size).to_s
    raise EOFError, "cut off: #{text.inspect}" if text.bytesize < size

    text
  end
end
