# frozen_string_literal: true

module Heddle
  class Server
    # A listening socket, and what its connections begin with before HTTP: a PROXY header, a TLS handshake, or both.
    class Listener
      # @return [TCPServer, UNIXServer]
      attr_reader :io
      # @return [String] its address in readable form
      attr_reader :url
      # @return [Integer, nil] nil for a unix socket
      attr_reader :port
      # @return [Net::TLS, nil] accepts the TLS handshakes of its clients; nil: they don't use TLS
      attr_accessor :tls
      # @return [Boolean] whether connections of trusted proxies begin with a header of the PROXY protocol
      attr_reader :proxied
      # @return [Boolean] whether only this user and root may connect; for a socket in the abstract namespace, which has
      #   no file permissions
      attr_reader :own_user

      # @param io [TCPServer, UNIXServer]
      # @param url [String]
      # @param port [Integer, nil]
      # @param path [String, nil] the file of a unix socket, which {#close} removes
      # @param tls [Net::TLS, nil]
      # @param proxied [Boolean]
      # @param own_user [Boolean]
      def initialize(io, url, port, path = nil, tls: nil, proxied: false, own_user: false)
        @io = io
        @url = url
        @port = port
        @path = path
        @inode = path && File.stat(path).ino
        @tls = tls
        @proxied = proxied
        @own_user = own_user
      end

      # @return [Boolean] whether it listens on an address other than loopback
      def beyond_this_machine?
        address = io.local_address
        address.ip? && !address.ipv4_loopback? && !address.ipv6_loopback?
      end

      # @param sockets [Net::Sockets] the sockets of a loop, which accept its connections from now on
      # @param trusted [Net::Networks] the proxies that are trusted now, which a reload may have changed
      # @return [void]
      def attach(sockets, trusted)
        tls&.certificates&.look_again # a new process may have inherited outdated certificates
        sockets.listen(io, tls:, proxies: (trusted if proxied))
      end

      # Closes the socket in this process only. Other processes still listen on it, so a unix socket's file remains.
      # @return [void]
      def release
        @io.close unless @io.closed?
        @path = nil
      end

      # Closes the socket, and removes the file of a unix socket.
      # @return [void]
      def close
        @io.close unless @io.closed?
        # Another server may have replaced the file meanwhile.
        File.unlink(@path) if @path && File.exist?(@path) && File.stat(@path).ino == @inode
      rescue SystemCallError
        # After a change of the user (option `user`), this process may lack permission to remove the file. The next
        # start of the server replaces the file.
      ensure
        @path = nil
      end
    end
  end
end
