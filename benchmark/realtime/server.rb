# frozen_string_literal: true

require_relative "../http/server"

module Bench
  module Realtime
    # A contestant at work, which listens in plain text or over TLS.
    class Server < HTTP::Server
      # @param contestant [Contestant] its way to listen is the server's
      def initialize(contestant, folder, ruby_flags)
        @tls = contestant.tls?
        super
      end

      # @return [Boolean]
      def tls? = @tls

      private

      def request(path, body)
        return super unless tls?

        Net::HTTP.start(HOST, port, nil, nil, use_ssl: true, verify_mode: OpenSSL::SSL::VERIFY_NONE, open_timeout: 2,
                                              read_timeout: 5, max_retries: 0) { |http| http.get(path) }
      rescue OpenSSL::SSL::SSLError => e
        raise IOError, e.message
      end
    end
  end
end
