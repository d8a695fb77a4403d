# frozen_string_literal: true

module Heddle
  class Server
    # A host and a port to listen on. `localhost` stands for 127.0.0.1 and, if the machine supports IPv6, also for ::1.
    class TCPBind
      # Maximum number of attempts to listen on localhost with port 0. The system chooses a port for the first address,
      # but that port may be in use on the second address.
      ATTEMPTS = 10
      private_constant :ATTEMPTS

      # @return [String] a name or an address, IPv6 without brackets
      attr_reader :host
      # @return [Integer] 0: the system chooses a port
      attr_reader :port
      # @return [TLSSettings, nil] nil: connections don't use TLS
      attr_reader :tls

      # @param host [String] a name or an address, IPv6 without brackets
      # @param port [Integer]
      # @param reuse_port [Boolean] whether other processes may listen on the same port; the system then distributes
      #   connections among them
      # @param v6only [Boolean, nil] whether an IPv6 address accepts no IPv4 connections; nil: the system's default
      # @param tls [TLSSettings, nil]
      # @param proxied [Boolean] whether connections of trusted proxies begin with a PROXY header
      def initialize(host, port, reuse_port: false, v6only: nil, tls: nil, proxied: false)
        @host = host
        @port = port
        @reuse_port = reuse_port
        @v6only = v6only
        @tls = tls
        @proxied = proxied
      end

      # @param address [String]
      # @param port [Integer]
      # @param secure [Object, nil] whether it is an https URL
      # @return [String] a URL for a browser; localhost replaces 0.0.0.0 and ::
      def self.url(address, port, secure)
        name = ["0.0.0.0", "::"].include?(address) ? "localhost" : address
        name = "[#{name}]" if name.include?(":")
        "#{secure ? "https" : "http"}://#{name}:#{port}"
      end

      # @return [String] identifies the address across processes
      def key = "tcp:#{host}:#{port}"

      # @param report [#call, nil] called with the name and the fields of each event
      # @param open [Array<TCPServer>] sockets that another process has opened for this address
      # @return [Array<Listener>]
      # @raise [BootError]
      def open(report: nil, open: [])
        acceptor = acceptor(report)
        open = take_inherited.map(&:io) if open.empty?
        open = sockets if open.empty?
        open.map { |socket| adopt(socket, acceptor) }
      end

      # @param report [#call, nil] called with the name and the fields of each event
      # @return [Net::TLS, nil] the TLS acceptor for clients of this address
      # @raise [BootError]
      def acceptor(report) = tls&.acceptor(host, report)

      # Checks the address without listening on it.
      # @return [String, nil] why this process can't listen on the address; nil: no reason was found
      def problem
        tls&.problem || (Addrinfo.getaddrinfo(host, nil, nil, :STREAM) && nil)
      rescue SocketError
        unknown_host
      end

      # @param io [TCPServer] an open socket
      # @param acceptor [Net::TLS, nil]
      # @return [Listener]
      def adopt(io, acceptor = nil)
        port = io.local_address.ip_port
        Listener.new(io, self.class.url(host, port, acceptor), port, tls: acceptor, proxied: @proxied)
      end

      private

      def sockets
        first, *others = addresses
        attempts = 0
        begin
          opened = [listen(first, port)]
          others.each { |address| opened << listen(address, opened.first.local_address.ip_port) }
        rescue Errno::EADDRINUSE
          opened&.each(&:close)
          retry if port == 0 && (attempts += 1) < ATTEMPTS
          raise
        end
        opened
      rescue SystemCallError => e
        raise BootError, reason(e)
      end

      # Takes the sockets that systemd has opened for this address.
      def take_inherited
        return [] if port == 0 || InheritedSocket.waiting.empty?

        wanted = addresses
        InheritedSocket.take do |one|
          one.address.ip? && one.address.ip_port == port && wanted.include?(one.address.ip_address)
        end
      end

      def addresses
        return [usable?(host) ? host : "0.0.0.0"] if host == "::" # for machines without IPv6

        # As in Puma, the hosts file of the machine does not count for localhost.
        host == "localhost" ? ["127.0.0.1", *("::1" if usable?("::1"))] : [host]
      end

      def usable?(address)
        TCPServer.new(address, 0).close
        true
      rescue SystemCallError
        false
      end

      def listen(address, port)
        info = Addrinfo.getaddrinfo(address, port, nil, :STREAM).first
        socket = Socket.new(info.afamily, :STREAM)
        socket.setsockopt(:SOCKET, :REUSEADDR, true)
        socket.setsockopt(:SOCKET, :REUSEPORT, true) if @reuse_port
        socket.setsockopt(:IPV6, :V6ONLY, @v6only) if info.ipv6? && !@v6only.nil?
        socket.bind(info)
        socket.listen(Bind::BACKLOG)
        socket.autoclose = false
        TCPServer.for_fd(socket.fileno)
      rescue SocketError
        raise BootError, unknown_host
      rescue SystemCallError
        socket&.close
        raise
      end

      def unknown_host = "can't listen on #{host}: no address was found for that host name"

      def reason(error)
        why = case error
              when Errno::EADDRINUSE
                "the port is taken by another program. Stop it, or choose another port with -p."
              when Errno::EACCES then "ports below 1024 need a privileged user. Choose another port with -p."
              when Errno::EADDRNOTAVAIL then "this machine has no such address. Choose another one with -b."
              else error.message
              end
        "can't listen on #{shown}: #{why}"
      end

      def shown = host.include?(":") ? "[#{host}]:#{port}" : "#{host}:#{port}"
    end
  end
end
