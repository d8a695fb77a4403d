# frozen_string_literal: true

require "heddle/native"
require "json"
require "openssl"
require "socket"

module Heddle
  module Net
    # TLS 1.2 and 1.3 (RFC 8446) for the connections of a listener. Ruby's openssl makes the handshake, without waiting
    # and without a fiber; then the extension reads and writes the openssl connection.
    #
    #     certificates = Heddle::Net::TLS::Certificates.new([Heddle::Net::TLS::KeyFiles.new("site.pem", "site.key")])
    #     sockets.listen(server, tls: Heddle::Net::TLS.new(certificates))
    #
    # @api private except what sig/ declares
    class TLS
      # Raised when a certificate or a key can't be used. The message names the file, and what to do.
      class Error < OwnError; end

      # The minimum versions that a listener or a client may demand.
      VERSIONS = { "1.2" => OpenSSL::SSL::TLS1_2_VERSION, "1.3" => OpenSSL::SSL::TLS1_3_VERSION }.freeze

      # The path of openssl.so. Several OpenSSL libraries may be installed, and the extension must take the functions of
      # the one that this file is linked with.
      OBJECT = $LOADED_FEATURES.grep(%r{/openssl\.(?:so|bundle)\z}).last
      private_constant :OBJECT

      # @param certificates [Certificates]
      # @param on_failure [#call, nil] called with an error that the client has not caused
      # @raise [Error] when the library of Ruby's openssl lacks a function that the extension needs
      def initialize(certificates, on_failure: nil)
        missing = self.class.send(:load, OBJECT)
        raise Error, "TLS can't be served: the TLS library that Ruby's openssl uses has no #{missing}" if missing

        @certificates = certificates
        @on_failure = on_failure
      end

      # @return [Certificates]
      attr_reader :certificates

      # Called by the extension, in the loop: makes the object that performs the handshake on this descriptor. The
      # extension closes the descriptor itself.
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

      # Called by the extension, in the loop: continues the handshake as far as it can without waiting.
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

      # Called by the extension when the application takes this socket over.
      # @param socket [OpenSSL::SSL::SSLSocket]
      # @param unread [String, nil] input that the extension has received: the first bytes that are read from the socket
      # @return [OpenSSL::SSL::SSLSocket]
      def self.take_over(socket, unread)
        socket.io.autoclose = true
        socket.sync_close = true
        socket.sync = true
        # From the end, because each byte is put before the others.
        unread&.bytes&.reverse_each { |byte| socket.ungetc(byte) }
        socket
      end
    end
  end
end

# Loaded now: certificates may be read again when there is no descriptor left to load code with.
require "heddle/net/tls/key_pair"
require "heddle/net/tls/key_files"
require "heddle/net/tls/self_signed"
require "heddle/net/tls/client_check"
require "heddle/net/tls/credentials"
require "heddle/net/tls/contexts"
require "heddle/net/tls/certificates"
