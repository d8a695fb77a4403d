# frozen_string_literal: true

module Heddle
  class Server
    # A listening socket, and the handshake of its connections before HTTP: a PROXY header, TLS.
    class Listener
      # @return [TCPServer, UNIXServer]
      attr_reader :io
      # @return [String] its address, for a person
      attr_reader :url
      # @return [Integer, nil] nil for a unix socket
      attr_reader :port
      # @return [Net::TLS, nil] the TLS acceptor for its clients
      attr_accessor :tls
      # @return [Net::Networks, nil] networks whose connections begin with a header of the PROXY protocol
      attr_reader :proxies
      # @return [Boolean] whether only this user and root may connect, for a socket without a file and permissions
      attr_reader :own_user

      # @param io [TCPServer, UNIXServer]
      # @param url [String]
      # @param port [Integer, nil]
      # @param path [String, nil] of a unix socket's file, which {#close} removes
      # @param tls [Net::TLS, nil]
      # @param proxies [Net::Networks, nil]
      # @param own_user [Boolean]
      def initialize(io, url, port, path = nil, tls: nil, proxies: nil, own_user: false)
        @io = io
        @url = url
        @port = port
        @path = path
        @inode = path && File.stat(path).ino
        @tls = tls
        @proxies = proxies
        @own_user = own_user
      end

      # @return [Boolean] whether other machines can reach it
      def beyond_this_machine?
        address = io.local_address
        address.ip? && !address.ipv4_loopback? && !address.ipv6_loopback?
      end

      # @param sockets [Net::Sockets] from now on they accept its connections
      # @return [void]
      def attach(sockets)
        tls&.certificates&.look_again # this may be a new process after a reload
        sockets.listen(io, tls:, proxies:)
      end

      # Closes the socket in this process only: other processes have it, too. So a unix socket's file stays.
      # @return [void]
      def release
        @io.close unless @io.closed?
        @path = nil
      end

      # @return [void]
      def close
        @io.close unless @io.closed?
        # Another server may have replaced the file meanwhile.
        File.unlink(@path) if @path && File.exist?(@path) && File.stat(@path).ino == @inode
      rescue SystemCallError
        # The user that the server has become may not remove the file. The next start replaces it.
      ensure
        @path = nil
      end
    end
  end
end
