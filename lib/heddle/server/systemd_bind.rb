# frozen_string_literal: true

module Heddle
  class Server
    # Sockets that the parent process passed at the start (sd_listen_fds(3)).
    class SystemdBind
      # @return [String, nil] only sockets with this FileDescriptorName=
      attr_reader :name
      # @return [TLSSettings, nil]
      attr_reader :tls

      # @param name [String, nil]
      # @param tls [TLSSettings, nil]
      # @param proxies [Net::Networks, nil] proxies that use the PROXY protocol
      def initialize(name, tls: nil, proxies: nil)
        @name = name
        @tls = tls
        @proxies = proxies
      end

      # @return [String] identifies the sockets across processes
      def key = "systemd:#{name}"

      # @param report [#call, nil] called with events
      # @param open [Array<TCPServer, UNIXServer>] sockets that another process got from systemd
      # @return [Array<Listener>]
      # @raise [BootError]
      def open(report: nil, open: [])
        open = InheritedSocket.take { |inherited| name.nil? || inherited.name == name }.map(&:io) if open.empty?
        raise BootError, no_sockets_message if open.empty?

        acceptor = acceptor(report)
        open.map { |io| adopt(io, acceptor) }
      end

      # @param report [#call, nil] called with events
      # @return [Net::TLS, nil] the TLS acceptor for clients of this address
      # @raise [BootError]
      def acceptor(report) = tls&.acceptor(nil, report)

      # @return [String, nil] what is wrong, found without listening
      def problem = tls&.problem

      private

      def adopt(io, acceptor)
        address = io.local_address
        url = address.unix? ? "unix:#{address.unix_path}" : TCPBind.url(address.ip_address, address.ip_port, acceptor)
        Listener.new(io, url, address.unix? ? nil : address.ip_port, tls: acceptor, proxies: @proxies)
      end

      def no_sockets_message
        named = name ? " named #{name} (FileDescriptorName=)" : ""
        "no socket#{named} was passed: systemd passes sockets where a .socket unit starts the service " \
          "(LISTEN_FDS and LISTEN_PID)"
      end
    end
  end
end
