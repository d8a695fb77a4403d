# frozen_string_literal: true

require "socket"

# What a client can hold, one class for each resource. The clients come from some addresses by turns, and are as many as
# the server allows, and some more.
module Hold
  HOST = "127.0.0.1"
  # The address of the other client.
  OTHER = "127.0.1.1"
  # Seconds that the other client waits for a response.
  PATIENCE = 30
  # Connections that the server takes; the bounds of all resources are reached with fewer.
  CONNECTIONS = 200
  # Options of every server.
  OPTIONS = ["--max-connections", CONNECTIONS.to_s, "--memory-limit", "1g", "--no-access-log"].freeze
  APP = <<~RUBY
    require "heddle/net/dns"
    SOCKET = Class.new { def on_message(client, message) = client.write(message) }.new
    STREAM = Class.new { def on_open(client) = client.write("first") }.new
    CLIENT = Heddle::HTTP::Client.new
    LARGE = ["x" * 2_000_000].freeze
    class Counter < Heddle::Live::Page
      template text: "<p><%= @count %></p>"
      event :add, by: Integer
      def mount(_params) = @count = 0
      def add(by:) = @count += by
    end
    PAGE = Heddle::Live.new(Counter)

    # Answers queries under wait.test never; => its port
    def start_dns
      program = ->(query) { query.name == "wait.test" ? sleep : query.answer("192.0.2.1") }
      dns = Heddle::Net::DNS::Server.new("127.0.0.1:0", queries: 100, tcp_connections: 100, &program)
      started = Thread::Queue.new
      Thread.new { Heddle.run { dns.run { started << true } } }
      started.pop
      dns.addresses.first[/\\d+\\z/]
    end

    hello = lambda do |env|
      case env["PATH_INFO"]
      when "/large" then next [200, {}, LARGE]
      when "/socket" then env["rack.upgrade"] = SOCKET
      when "/events" then env["rack.upgrade"] = STREAM
      when "/dns" then next [200, {}, [start_dns]]
      when "/fetch" then CLIENT.get("http://" + env["QUERY_STRING"]).body
      else env["rack.input"]&.read
      end
      [200, { "content-length" => "5" }, ["hello"]]
    end
    run Rack::URLMap.new("/page" => PAGE, "/" => hello)
  RUBY

  # Holds a resource of a server by connections.
  class Resource
    # @return [Array<Class>]
    def self.all = ObjectSpace.each_object(singleton_class).reject { |one| one == self }.sort_by(&:name)

    # @return [String] as the command names it
    def self.label = name[/\w+\z/].gsub(/(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/, "_").downcase

    # @return [Array<String>] further options of the server, whose files may be in the folder
    def self.options(_folder) = []

    # @return [String] the address of the server
    def self.bind = "#{HOST}:0"

    # @return [String] the networks of trusted proxies
    def self.proxies = "none"

    # @return [String] the application, which answers another client's request for / with any response
    def self.application(folder) = File.join(folder, "config.ru").tap { |path| File.write(path, APP) }

    # @return [Hash] the server's environment
    def self.environment = {}

    # @param server [ServedProcess]
    # @param control [String] path of its control socket
    # @param addresses [Integer] how many the clients come from
    def initialize(server, control, addresses)
      @server = server
      @port = server&.uri&.port
      @control = control
      @addresses = addresses
      @sockets = []
    end

    # Another client's request, on a connection of its own.
    # @return [Boolean] whether it was answered
    def ask
      socket = TCPSocket.new(HOST, @port, OTHER, 0)
      read_response(socket, request("GET /", "Connection: close\r\n"))
    end

    # How many clients reach the bound.
    def bound = CONNECTIONS

    # Makes so many clients in all. What the server refuses is no longer held.
    def hold(count)
      (@sockets.size...count).each do |number|
        socket = open_socket("127.0.0.#{2 + (number % @addresses)}")
        @sockets << socket
        begin_holding(socket)
      rescue SystemCallError, IOError, RuntimeError # the last one is WebSocketClient's
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

    def open_socket(address) = TCPSocket.new(HOST, @port, address, 0)

    def read_response(socket, request)
      socket.timeout = PATIENCE
      socket.write(request)
      socket.read.start_with?("HTTP/1.1 ")
    ensure
      socket.close
    end

    # Bytes of a response that was not read may be left.
    def open?(socket)
      loop do
        found = socket.read_nonblock(65_536, exception: false)
        return found == :wait_readable unless found.is_a?(String)
      end
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
    def self.options(_folder) = ["--body-disk-limit", "20m"]

    def bound = 60

    private

    def begin_holding(socket) = socket.write(request("POST /", "Content-Length: 400000\r\n"), "x" * 100_000)
  end

  # Streamed bodies: a fiber each.
  class Fibers < Resource
    def self.options(_folder) = ["--stream-bodies", "/"]

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

  # WebSocket messages that do not end: all have 16 MiB together.
  class Messages < WebSockets
    def bound = 64

    private

    def begin_holding(socket)
      super
      socket.write([0x02, 0xFF, 262_000, 0].pack("CCQ>N"), "x" * 200_000)
    end
  end
end
