# frozen_string_literal: true

module Heddle
  class Server
    # A host and a port to listen on. `localhost` means both its IPv4 and its IPv6 address, if the machine has both.
    class TCPBind
      # Attempts to listen on localhost with port 0: its second address needs the port that the system has chosen for
      # the first one.
      ATTEMPTS = 10
      private_constant :ATTEMPTS

      # @return [String]
      attr_reader :host
      # @return [Integer] 0 lets the system choose
      attr_reader :port
      # @return [TLSSettings, nil]
      attr_reader :tls

      # @param host [String] a name or an address, IPv6 without brackets
      # @param port [Integer]
      # @param reuse_port [Boolean] whether several processes may listen on the same port; the system then spreads
      #   clients among them
      # @param v6only [Boolean, nil] whether an IPv6 address accepts no IPv4 connections; nil: the system's default
      # @param tls [TLSSettings, nil]
      # @param proxies [Net::Networks, nil] proxies that use the PROXY protocol
      def initialize(host, port, reuse_port: false, v6only: nil, tls: nil, proxies: nil)
        @host = host
        @port = port
        @reuse_port = reuse_port
        @v6only = v6only
        @tls = tls
        @proxies = proxies
      end

      # @param address [String]
      # @param port [Integer]
      # @param secure [Object, nil]
      # @return [String] a URL for a browser, with localhost in place of the address that means "every address"
      def self.url(address, port, secure)
        name = ["0.0.0.0", "::"].include?(address) ? "localhost" : address
        name = "[#{name}]" if name.include?(":")
        "#{secure ? "https" : "http"}://#{name}:#{port}"
      end

      # @return [String] identifies the address across processes
      def key = "tcp:#{host}:#{port}"

      # @param report [#call, nil] called with events
      # @param open [Array<TCPServer>] sockets that another process has opened for this address
      # @return [Array<Listener>]
      # @raise [BootError]
      def open(report: nil, open: [])
        acceptor = acceptor(report)
        open = take_inherited.map(&:io) if open.empty?
        open = sockets if open.empty?
        open.map { |socket| adopt(socket, acceptor) }
      end

      # @param report [#call, nil] called with events
      # @return [Net::TLS, nil] the TLS acceptor for clients of this address
      # @raise [BootError]
      def acceptor(report) = tls&.acceptor(host, report)

      # @return [String, nil] what is wrong, found without listening
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
        Listener.new(io, self.class.url(host, port, acceptor), port, tls: acceptor, proxies: @proxies)
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

      # The sockets that systemd has opened for this address.
      def take_inherited
        return [] if port == 0 || InheritedSocket.waiting.empty?

        wanted = addresses
        InheritedSocket.take do |one|
          one.address.ip? && one.address.ip_port == port && wanted.include?(one.address.ip_address)
        end
      end

      def addresses
        return [usable?(host) ? host : "0.0.0.0"] if host == "::" # a configuration file may be used on several machines

        # Like Puma, uses the machine's addresses, not its hosts file.
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

      def unknown_host = "can't listen on #{host}: there is no host of that name"

      def reason(error)
        case error
        when Errno::EADDRINUSE
          "can't listen on #{shown}: the port is taken by another program. Stop it, " \
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
