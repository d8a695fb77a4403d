# frozen_string_literal: true

require "heddle/native"
require "openssl"
require "socket"

module Heddle
  module Net
    # Makes the connections of a listener private (TLS 1.2 and 1.3, RFC 8446): Ruby's openssl shakes hands, without a
    # wait and without a fiber; after that the extension reads and writes what openssl has made.
    #
    #     certificates = Heddle::Net::TLS::Certificates.new([Heddle::Net::TLS::KeyFiles.new("site.pem", "site.key")])
    #     sockets.listen(server, tls: Heddle::Net::TLS.new(certificates))
    #
    # @api private but for what sig/ shows
    class TLS
      # A certificate or a key that can't be used; the message says which file, and what to do.
      class Error < StandardError
        include Heddle::Error
      end

      # openssl.so is linked with one library of perhaps several, and its functions are the ones that must be used.
      OBJECT = $LOADED_FEATURES.grep(%r{/openssl\.(?:so|bundle)\z}).last
      private_constant :OBJECT

      # @param certificates [Certificates]
      # @param on_failure [#call, nil] called with an error that is not the client's
      # @raise [Error] when Ruby's openssl is not built in the usual way
      def initialize(certificates, on_failure: nil)
        missing = self.class.send(:load, OBJECT)
        raise Error, "TLS can't be served: the library of Ruby's openssl has no #{missing}" if missing

        @certificates = certificates
        @on_failure = on_failure
      end

      # @return [Certificates]
      attr_reader :certificates

      # Called by the extension, in the loop: makes the object that performs the handshake on this
      # descriptor, which the extension keeps.
      # @param descriptor [Integer]
      # @return [OpenSSL::SSL::SSLSocket]
      def socket(descriptor)
        io = TCPSocket.for_fd(descriptor)
        io.autoclose = false
        OpenSSL::SSL::SSLSocket.new(io, @certificates.context)
      rescue StandardError => e
        @on_failure&.call(e)
        raise
      end

      # Called by the extension, in the loop: as much of the handshake as can be done now.
      # @param socket [OpenSSL::SSL::SSLSocket]
      # @return [Symbol, OpenSSL::SSL::SSLSocket, nil] `:wait_readable` or `:wait_writable`; the socket: it is done;
      #   nil: it has failed
      def handshake(socket)
        socket.accept_nonblock(exception: false)
      rescue OpenSSL::SSL::SSLError, SystemCallError, IOError
        nil
      rescue StandardError => e
        @on_failure&.call(e)
        nil
      end

      # Called by the extension: this socket is the application's from now on.
      # @param socket [OpenSSL::SSL::SSLSocket]
      # @param unread [String, nil] what it reads first
      # @return [OpenSSL::SSL::SSLSocket]
      def self.take_over(socket, unread)
        socket.io.autoclose = true
        socket.sync_close = true
        socket.sync = true
        # From its end: each goes before those that are there.
        unread&.bytes&.reverse_each { |byte| socket.ungetc(byte) }
        socket
      end
    end
  end
end

# At once: certificates may be read anew when there is no descriptor left to load code with.
require "heddle/net/tls/key_pair"
require "heddle/net/tls/key_files"
require "heddle/net/tls/self_signed"
require "heddle/net/tls/client_check"
require "heddle/net/tls/credentials"
require "heddle/net/tls/contexts"
require "heddle/net/tls/certificates"
