# frozen_string_literal: true

require "socket"

# A connection without a socket: what the client sends is an array, what the server does is recorded.
# Pieces are strings or what reading does instead: :timeout, :reset. After the last one comes the end of input, or with
# `open: true` nothing until the time limit.
class MemoryConnection
  attr_reader :output, :writes, :calls, :timeouts, :remote_address

  def initialize(*pieces, open: false, remote_address: "192.0.2.1")
    @pieces = pieces.map { |piece| piece.is_a?(String) ? piece.b : piece }
    @open = open
    @remote_address = remote_address
    @output = "".b
    @writes = 0
    @calls = []
    @timeouts = []
    @fail_writes = nil
  end

  def local_address = "198.51.100.1"

  def local_port = 9_292

  # From now on writing fails with this error.
  def fail_writes(error) = @fail_writes = error

  # The client sends more.
  def push(*pieces) = @pieces.concat(pieces.map(&:b))

  def read_partial(max, timeout = nil)
    @timeouts << timeout
    case (piece = @pieces.shift)
    when nil
      raise IO::TimeoutError if @open && timeout

      nil
    when :timeout then raise IO::TimeoutError
    when :reset then raise Errno::ECONNRESET
    else
      @pieces.unshift(piece.byteslice(max, piece.bytesize)) if piece.bytesize > max
      piece.byteslice(0, max)
    end
  end

  def unread(bytes)
    @calls << [:unread, bytes]
    @pieces.unshift(bytes)
  end

  def write(bytes, timeout = nil)
    raise @fail_writes if @fail_writes

    @timeouts << timeout
    @writes += 1
    data = Array(bytes).map(&:b).join
    @output << data
    data.bytesize
  end

  def sendfile(file, offset, length, timeout = nil)
    @calls << [:sendfile, offset, length]
    write(file.pread(length, offset), timeout) if length > 0
  end

  def idle! = @calls << :idle

  def shutdown_write = @calls << :shutdown_write

  def close = @calls << :close

  def closed? = @calls.include?(:close)

  def idle? = @calls.include?(:idle)

  def detach
    @calls << :detach
    mine, @client = UNIXSocket.pair
    @pieces.grep(String).reverse_each { |piece| mine.ungetbyte(piece) }
    mine
  end

  # The client's end of what detach handed over.
  attr_reader :client
end
