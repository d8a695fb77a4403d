# frozen_string_literal: true

require "socket"

# A server that does with each request what its block says, and remembers what it was asked. Threads of its own: the
# client under test may be anywhere.
class ScriptedServer
  Received = Struct.new(:head, :body) do
    def method = head[/\A\S+/]
    def target = head.split(" ", 3)[1]
    def [](name) = head[/^#{Regexp.escape(name)}:\s*(.*?)\r$/i, 1]
  end

  attr_reader :port, :requests, :connections

  # @yield [socket, request, number of the connection] whatever it returns, the next request is read; it may close
  def initialize(host = "127.0.0.1", wrap: ->(socket) { socket }, &answer)
    @listener = TCPServer.new(host, 0)
    @port = @listener.local_address.ip_port
    @requests = Thread::Queue.new
    @answer = answer
    @wrap = wrap
    @connections = 0
    @threads = [Thread.new { accept }]
  end

  def url = "http://127.0.0.1:#{@port}"

  # What was received so far.
  def received = Array.new(@requests.size) { @requests.pop }

  def close
    @listener.close
    @threads.each(&:kill).each(&:join)
  end

  private

  def accept
    loop do
      socket = @listener.accept
      socket.setsockopt(:TCP, :NODELAY, 1)
      number = @connections += 1
      @threads << Thread.new { serve_and_close(@wrap.call(socket), number) }
    end
  rescue IOError
    nil
  end

  def serve_and_close(socket, number)
    serve(socket, number)
  rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
    nil
  ensure
    socket.close
  end

  def serve(socket, number)
    while (request = read_request(socket))
      @requests << request
      @answer.call(socket, request, number)
      break if socket.closed?
    end
  end

  def read_request(socket)
    head = socket.gets("\r\n\r\n") or return
    size = head[/^content-length:\s*(\d+)/i, 1]
    Received.new(head, head.match?(/^transfer-encoding:\s*chunked/i) ? chunks(socket) : socket.read(size.to_i))
  end

  def chunks(socket)
    body = +""
    until (size = socket.readline("\r\n").to_i(16)).zero?
      body << socket.read(size)
      socket.read(2)
    end
    socket.gets("\r\n")
    body
  end
end
