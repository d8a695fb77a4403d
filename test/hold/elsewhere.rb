# frozen_string_literal: true

require "heddle/net/dns"
require_relative "resources"

# Resources beside the requests of a server.
module Hold
  # Connections to the control socket that say nothing. The other client asks there, too.
  class ControlSockets < Resource
    def bound = 64

    def ask = read_response(UNIXSocket.new(@control), request("GET /status", "Connection: close\r\n"))

    private

    def open_socket(_address) = UNIXSocket.new(@control)
    def begin_holding(_socket) = nil
  end

  # A DNS server in a thread of the HTTP server: connections over TCP that say nothing. The other client asks over UDP.
  class DNSConnections < Resource
    DNS = Heddle::Net::DNS
    private_constant :DNS

    def bound = 100

    def ask
      socket = UDPSocket.new
      socket.timeout = PATIENCE
      socket.bind(OTHER, 0)
      socket.send(DNS::Message.query("a.test", :A).encode, 0, HOST, dns_port)
      !socket.recv(512).empty?
    ensure
      socket&.close
    end

    private

    def open_socket(address) = TCPSocket.new(HOST, dns_port, address, 0)
    def begin_holding(_socket) = nil

    def dns_port
      @dns_port ||= @server.get("/dns").body.to_i
    end
  end

  # Queries over UDP whose answer does not come.
  class DNSQueries < DNSConnections
    private

    def open_socket(address)
      UDPSocket.new.tap do |socket|
        socket.bind(address, 0)
        socket.connect(HOST, dns_port)
      end
    end

    def begin_holding(socket) = socket.send(DNS::Message.query("wait.test", :A).encode, 0)

    # Was it not answered, such as by REFUSED?
    def open?(socket) = socket.recv_nonblock(512, Socket::MSG_PEEK, exception: false) == :wait_readable
  end

  # Requests of the server's HTTP client to a server whose responses do not end.
  class ClientResponses < Resource
    # Connections of the client to one origin.
    def bound = 20

    def initialize(...)
      super
      @endless = TCPServer.new("0.0.0.0", 0)
      @endless.listen(CONNECTIONS)
      @begun = []
      @thread = Thread.new { loop { respond } }
    end

    def release
      super
      @thread.kill
      [@endless, *@begun].each(&:close)
    end

    private

    def respond
      @begun << socket = @endless.accept
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nx")
    end

    def begin_holding(socket)
      socket.write(request("GET /fetch?#{HOST}:#{@endless.addr[1]}/"))
    end
  end
end
