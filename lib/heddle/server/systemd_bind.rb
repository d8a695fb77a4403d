# frozen_string_literal: true

module Heddle
  class Server
    # Sockets that systemd has passed at the start (sd_listen_fds(3)).
    class SystemdBind
      # @return [String, nil] the FileDescriptorName= of the sockets; nil: all sockets
      attr_reader :name
      # @return [TLSSettings, nil] nil: connections don't use TLS
      attr_reader :tls

      # @param name [String, nil]
      # @param tls [TLSSettings, nil]
      # @param proxied [Boolean] whether connections of trusted proxies begin with a PROXY header
      def initialize(name, tls: nil, proxied: false)
        @name = name
        @tls = tls
        @proxied = proxied
      end

      # @return [String] identifies the sockets across processes
      def key = "systemd:#{name}"

      # @param report [#call, nil] called with the name and the fields of each event
      # @param open [Array<TCPServer, UNIXServer>] sockets that another process got from systemd
      # @return [Array<Listener>]
      # @raise [BootError]
      def open(report: nil, open: [])
        open = InheritedSocket.take { |inherited| name.nil? || inherited.name == name }.map(&:io) if open.empty?
        raise BootError, no_sockets_message if open.empty?

        acceptor = acceptor(report)
        open.map { |io| adopt(io, acceptor) }
      end

      # @param report [#call, nil] called with the name and the fields of each event
      # @return [Net::TLS, nil] the TLS acceptor for clients of this address
      # @raise [BootError]
      def acceptor(report) = tls&.acceptor(nil, report)

      # Checks the address without listening on it.
      # @return [String, nil] what is wrong with the TLS settings; nil: no mistake was found
      def problem = tls&.problem

      private

      def adopt(io, acceptor)
        address = io.local_address
        url = address.unix? ? "unix:#{address.unix_path}" : TCPBind.url(address.ip_address, address.ip_port, acceptor)
        Listener.new(io, url, address.unix? ? nil : address.ip_port, tls: acceptor, proxied: @proxied)
      end

      def no_sockets_message
        named = name ? " named #{name} (FileDescriptorName=)" : ""
        "systemd has passed no socket#{named}. It passes sockets (LISTEN_FDS and LISTEN_PID) if the service has " \
          "a .socket unit"
      end
    end
  end
end
