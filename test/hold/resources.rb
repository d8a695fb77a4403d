# frozen_string_literal: true

require "socket"

# What a client can hold, one class for each resource. The clients come from some addresses by turns, and are as many as
# the server allows, and some more.
module Hold
  HOST = "127.0.0.1"
  # Connections that the server takes; the bounds of all resources are reached with fewer.
  CONNECTIONS = 200
  # Options of every server: without trusted networks, or loopback addresses had no limit of their own.
  OPTIONS = ["--trusted-proxies", "none", "--max-connections", CONNECTIONS.to_s, "--memory-limit", "1g",
             "--no-access-log"].freeze

  # Holds a resource of a server by connections.
  class Resource
    # @return [Array<Class>]
    def self.all = ObjectSpace.each_object(singleton_class).reject { |one| one == self }.sort_by(&:name)

    # @return [String] as the command names it
    def self.label = name[/\w+\z/].gsub(/(?<=[a-z])(?=[A-Z])/, "_").downcase

    # @return [Array<String>] further options of the server
    def self.options = []

    # @param port [Integer]
    # @param addresses [Integer] how many the clients come from
    def initialize(port, addresses)
      @port = port
      @addresses = addresses
      @sockets = []
    end

    # How many clients reach the bound.
    def bound = CONNECTIONS

    # Makes so many clients in all. What the server refuses is no longer held.
    def hold(count)
      (@sockets.size...count).each do |number|
        socket = TCPSocket.new(HOST, @port, "127.0.0.#{2 + (number % @addresses)}", 0)
        @sockets << socket
        begin_holding(socket)
      rescue SystemCallError, IOError
        next # the server has closed it
      end
    end

    # @return [Integer] clients whose connection is open
    def held = @sockets.count { |socket| open?(socket) }

    def release
      @sockets.each(&:close)
      @sockets.clear
    end

    private

    # Bytes of a response that was not read may be left.
    def open?(socket)
      !socket.read_nonblock(65_536, exception: false).nil?
    rescue SystemCallError
      false
    end

    def request(line, fields = "") = "#{line} HTTP/1.1\r\nHost: a\r\n#{fields}\r\n"

    def upgrade
      request("GET /socket", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
    end
  end

  # Connections that never send a byte.
  class SilentConnections < Resource
    private

    def begin_holding(_socket) = nil
  end

  # Connections between two requests.
  class IdleConnections < Resource
    private

    def begin_holding(socket)
      socket.write(request("GET /"))
      socket.gets("hello")
    end
  end

  # Heads that do not end.
  class Heads < Resource
    private

    def begin_holding(socket) = socket.write("GET / HTTP/1.1\r\nHost: a\r\nX-Long: #{"x" * 4_000}")
  end

  # Bodies in memory.
  class Bodies < Resource
    private

    def begin_holding(socket) = socket.write(request("POST /", "Content-Length: 60000\r\n"), "x" * 50_000)
  end

  # Bodies in files: descriptors and disk.
  class Files < Resource
    def self.options = ["--body-disk-limit", "20m"]

    def bound = 60

    private

    def begin_holding(socket) = socket.write(request("POST /", "Content-Length: 400000\r\n"), "x" * 100_000)
  end

  # Streamed bodies: a fiber each.
  class Fibers < Resource
    def self.options = ["--stream-bodies", "/"]

    private

    def begin_holding(socket) = socket.write(request("POST /", "Content-Length: 60000\r\n"), "x")
  end

  # Responses of which nothing is read.
  class Responses < Resource
    private

    def begin_holding(socket) = socket.write(request("GET /large"))
    def open?(_socket) = true
  end

  # Event streams.
  class EventStreams < Resource
    private

    def begin_holding(socket)
      socket.write(request("GET /events", "Accept: text/event-stream\r\n"))
      socket.gets("\r\n\r\n")
    end
  end

  # WebSockets that say nothing.
  class WebSockets < Resource
    private

    def begin_holding(socket)
      socket.write(upgrade)
      socket.gets("\r\n\r\n")
    end
  end

  # WebSocket messages that do not end.
  class Messages < WebSockets
    private

    def begin_holding(socket)
      super
      socket.write([0x02, 0xFF, 262_000, 0].pack("CCQ>N"), "x" * 200_000)
    end
  end
end
