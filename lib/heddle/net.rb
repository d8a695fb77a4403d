# frozen_string_literal: true

require "heddle/native"
require "heddle/net/datagram_socket"
require "heddle/net/networks"

module Heddle
  # Sockets, connections, name resolution and TLS. This layer does not depend on HTTP.
  #
  # @api private
  module Net
    autoload :DNS, "heddle/net/dns"
    autoload :Connector, "heddle/net/connector"
    autoload :HappyEyeballs, "heddle/net/happy_eyeballs"
    autoload :PoolShares, "heddle/net/pool_shares"
    autoload :PrivateAddressError, "heddle/net/connector"
    autoload :Resolver, "heddle/net/resolver"
    autoload :ConnectTimeoutError, "heddle/net/connector"
    autoload :TLSTimeoutError, "heddle/net/connector"
    TLS.autoload :ClientContext, "heddle/net/tls/client_context"

    # Opens a connection to a server. The connection can be used in any event loop, where only the calling fiber waits,
    # and in threads without a loop. Only one fiber or thread at a time may use it. A forked child can't use it.
    #
    # Tries IPv6 and IPv4 addresses of the name alternately. Starts the next attempt when one fails, or 250 ms after the
    # latest one began. Uses the first connection that succeeds (Happy Eyeballs, RFC 8305).
    #
    #     connection = Heddle::Net.connect("example.com:443", tls: true)
    #     connection.write("GET / HTTP/1.0\r\nHost: example.com\r\n\r\n")
    #     connection.readpartial(65_536)
    #
    # @param endpoint [String] `host:port`, `[::1]:port`, or `unix:/path`
    # @param tls [Boolean, Hash, TLS::ClientContext] true: use TLS, and trust the system's certificates; a Hash: the
    #   arguments of {TLS::ClientContext#initialize}
    # @param timeout [Numeric, nil] maximum number of seconds for name resolution and connecting together. The TLS
    #   handshake may then take the same number of seconds. nil: no limit
    # @param allow [#call, nil] called with each numeric address of the host before the first attempt; the addresses
    #   for which the call returns false are not used
    # @return [OutboundConnection]
    # @raise [SystemCallError, Socket::ResolutionError, ConnectTimeoutError, TLSTimeoutError, OpenSSL::SSL::SSLError]
    # @raise [PrivateAddressError] if `allow` rejects every address
    def self.connect(endpoint, tls: false, timeout: 10, allow: nil)
      Connector.new(endpoint, tls: tls, timeout: timeout, allow: allow).connect
    end
  end
end
