# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The base of all errors between a client and a server. A response with status 500 is not an error.
      class Error < OwnError; end

      # No connection could be made: the name was not resolved, the network failed, or the server refused it.
      class ConnectError < Error; end
      # The TLS handshake failed: the certificate is expired, for another host or of an unknown issuer, or there is no
      # common version.
      class TLSError < ConnectError; end
      # The proxy could not be reached, or has refused to connect to the server.
      class ProxyError < ConnectError; end
      # `deny_private` does not allow the server's address.
      class PrivateAddressError < ConnectError; end

      # The connection was lost before the response, and the request changed nothing or may be repeated (RFC 9110,
      # 9.2.2).
      class ConnectionLostError < Error; end
      # The connection was lost after the request was sent, and before the response. The server may have carried the
      # request out, or not; it is not sent again.
      class OutcomeUnknownError < ConnectionLostError; end
      # The response was cut off.
      class IncompleteBodyError < Error; end

      # The received bytes are not a valid HTTP response.
      class ProtocolError < Error; end
      # The body, as sent or decompressed, is larger than `body_limit`.
      class BodyTooLargeError < Error; end
      # The body is not what its Content-Encoding says.
      class DecodingError < Error; end
      # More redirects than `redirects`, or one that can't be followed.
      class RedirectError < Error; end

      # A time limit has passed. Each phase has its own.
      class TimeoutError < Error; end
      # No connection of the origin was free in time (`timeout: { pool: … }`).
      class PoolTimeoutError < TimeoutError; end
      # Resolving the name and connecting took too long (`connect`).
      class ConnectTimeoutError < TimeoutError; end
      # The TLS handshake took too long (`tls`).
      class TLSTimeoutError < TimeoutError; end
      # The server read nothing more of the request for too long (`write`).
      class WriteTimeoutError < TimeoutError; end
      # The first byte of the response came too late (`first_byte`).
      class FirstByteTimeoutError < TimeoutError; end
      # The response paused for too long (`read`).
      class ReadTimeoutError < TimeoutError; end
      # The request as a whole took too long (`total`).
      class TotalTimeoutError < TimeoutError; end
    end
  end
end
