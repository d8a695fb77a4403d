# frozen_string_literal: true

require "socket"

module Heddle
  class Server
    # A host and a port to listen on. `localhost` is both of its addresses, where the machine has both.
    class TCPBind
      # With port 0 the second address of localhost needs the port that the first one got.
      ATTEMPTS = 10
      private_constant :ATTEMPTS

      # @return [String]
      attr_reader :host
      # @return [Integer] 0 lets the system choose
      attr_reader :port

      # @param host [String] a name or an address, IPv6 without brackets
      # @param port [Integer]
      def initialize(host, port)
        @host = host
        @port = port
      end

      # @param backlog [Integer]
      # @return [Array<Listener>]
      # @raise [BootError]
      def open(backlog)
        first, *others = addresses
        attempts = 0
        begin
          opened = [listen(first, port, backlog)]
          others.each { |address| opened << listen(address, opened.first.local_address.ip_port, backlog) }
        rescue Errno::EADDRINUSE
          opened&.each(&:close)
          retry if port == 0 && (attempts += 1) < ATTEMPTS
          raise
        end
        opened.map { |socket| Listener.new(socket, url(socket.local_address.ip_port), socket.local_address.ip_port) }
      rescue SystemCallError => e
        raise BootError, reason(e)
      end

      private

      def addresses
        return [host] unless host == "localhost"

        found = Addrinfo.getaddrinfo(host, nil, nil, :STREAM).map(&:ip_address).uniq
        found = ["127.0.0.1"] if found.empty?
        found.sort_by { |address| address.include?(":") ? 1 : 0 }.select { |address| usable?(address) }
      rescue SocketError
        ["127.0.0.1"]
      end

      # The hosts file may promise an address that the machine does not have.
      def usable?(address)
        TCPServer.new(address, 0).close
        true
      rescue SystemCallError
        false
      end

      def listen(address, port, backlog)
        server = TCPServer.new(address, port)
        server.listen(backlog)
        server
      rescue SocketError
        raise BootError, "can't listen on #{host}: there is no host of that name"
      end

      # An address for a browser: the one that means "every address" is none.
      def url(port)
        name = ["0.0.0.0", "::"].include?(host) ? "localhost" : host
        name = "[#{name}]" if name.include?(":")
        "http://#{name}:#{port}"
      end

      def reason(error)
        case error
        when Errno::EADDRINUSE
          "can't listen on #{shown}: the port is taken by another program. Stop that one, " \
          "or choose another port with -p."
        when Errno::EACCES
          "can't listen on #{shown}: ports below 1024 need a privileged user. Choose another port with -p."
        when Errno::EADDRNOTAVAIL
          "can't listen on #{shown}: this machine has no such address. Choose another one with -b."
        else
          "can't listen on #{shown}: #{error.message}"
        end
      end

      def shown = host.include?(":") ? "[#{host}]:#{port}" : "#{host}:#{port}"
    end
  end
end
